"use strict";
// Loads the data of the run, then the scripts that draw it, in their order.
(async () => {
  const { scripts } = document.currentScript.dataset;

  async function get(address) {
    const answer = await fetch(address);
    if (answer.status === 204) return null;
    if (!answer.ok) throw new Error((await answer.json()).error);
    return answer;
  }

  try {
    const [run, labels, positions] = await Promise.all(
      ["/api/run", "/api/labels", "/api/positions"].map(get),
    );
    globalThis.loaded = {
      run: await run.json(),
      labels: await labels.arrayBuffer(),
      positions: await positions?.arrayBuffer(),
    };
  } catch (problem) {
    document.getElementById("place-title").textContent = say("explore.failed", { why: problem.message });
    return;
  }
  for (const name of scripts.split(" ")) {
    const script = document.createElement("script");
    script.src = `/assets/${name}.js`;
    script.async = false;
    document.head.append(script);
  }
})();
