"use strict";
// Requests to the server. Problems are errors whose message is a sentence for people.
const server = (() => {
  async function ask(address, options) {
    let answer;
    try {
      answer = await fetch(address, options);
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      throw new Error(say("explore.ended"));
    }
    if (answer.ok) return answer;
    const { error } = await answer.json().catch(() => ({ error: say("explore.problem") }));
    throw Object.assign(new Error(error), { status: answer.status });
  }

  async function get(address, parameters = {}, signal = undefined) {
    const query = new URLSearchParams(parameters);
    return (await ask(query.size ? `${address}?${query}` : address, { signal })).json();
  }

  const bytes = async (address) => (await ask(address)).arrayBuffer();

  async function post(address, body) {
    const headers = { "Content-Type": "application/json" };
    return (await ask(address, { method: "POST", headers, body: JSON.stringify(body) })).json();
  }

  return { get, bytes, post };
})();
