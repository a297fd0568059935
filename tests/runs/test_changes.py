"""What changed from a run to the next one."""

from __future__ import annotations

import numpy as np

from nouncut.runs.changes import Changes, GroupsOf, compare_groups, describe_changes


def test_groups_with_another_name_are_told():
    rows = np.arange(4)
    before = GroupsOf(np.array([0, 0, 1, 1]), {0: "group 1", 1: "tench"})
    after = GroupsOf(np.array([0, 0, 1, 1]), {0: "truck", 1: "tench"})
    changes = Changes(**compare_groups(before, after, (rows, rows), {0: 0, 1: 1}))
    assert changes
    assert (changes.n_names_kept, changes.n_moved, changes.groups) == (1, 0, [])
    assert describe_changes(changes) == ['Other names: "group 1" is now "truck".']
