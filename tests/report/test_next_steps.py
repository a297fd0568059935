import shlex

from nouncut.report.next_steps import next_steps
from nouncut.runs.tables import images_table


def test_commands_can_be_pasted_into_a_shell(make_run, tmp_path):
    run = make_run(tmp_path / "it's; a run", manifest={"source": ["my photos", "$(date)"]})
    commands = [shlex.split(step.command) for step in next_steps(run)]
    assert commands == [
        ["nouncut", "cluster", "my photos", "$(date)", "-k", "2"],
        ["nouncut", "export", str(run.directory)],
        ["nouncut", "predict", str(run.directory), "NEW_IMAGES"],
    ]


def test_no_more_clusters_than_images_are_proposed(tmp_path, write_run):
    run = write_run(tmp_path / "run", images_table(["/photos/1.jpg"]), [0])
    assert [step.command.split()[1] for step in next_steps(run)] == ["export", "predict"]
