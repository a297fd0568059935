import shlex

from nouncut.report.next_steps import next_steps
from nouncut.runs.changes import Changes
from nouncut.runs.tables import images_table


def test_commands_can_be_pasted_into_a_shell(make_run, tmp_path):
    run = make_run(tmp_path / "it's; a run", manifest={"source": ["my photos", "$(date)"]})
    commands = [shlex.split(step.command) for step in next_steps(run)]
    assert commands == [
        ["nouncut", "explore", str(run.directory)],
        ["nouncut", "cluster", "my photos", "$(date)", "-k", "2"],
        ["nouncut", "export", str(run.directory)],
        ["nouncut", "update", str(run.directory)],
        ["nouncut", "predict", str(run.directory), "NEW_IMAGES"],
    ]


def test_no_more_clusters_than_images_are_proposed(tmp_path, write_run):
    run = write_run(tmp_path / "run", images_table(["/photos/1.jpg"]), [0])
    verbs = [step.command.split()[1] for step in next_steps(run)]
    assert verbs == ["explore", "export", "update", "predict"]


def test_clustering_again_is_proposed_where_an_update_advised_it(make_run, tmp_path):
    changes = Changes(n_new=9, why_recluster="9 of 9 images fit no group").to_json()
    run = make_run(tmp_path / "run", manifest={"changes": changes})
    (step,) = [step for step in next_steps(run) if "--recluster" in step.command]
    assert step.purpose == "Cluster all images again: 9 of 9 images fit no group."
