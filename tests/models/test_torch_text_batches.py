from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.models.torch_text_batches import NO_TOKEN, cut_sequences, length_batches, prefix_groups


@given(
    sequences=st.lists(
        st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=40
    ),
    smallest=st.integers(1, 6),
)
@settings(deadline=None)
def test_groups_hold_every_sequence_once_and_share_their_prefix(sequences, smallest):
    tokens = np.array([sequence + [9] * (6 - len(sequence)) for sequence in sequences])
    ends = np.array([len(sequence) - 1 for sequence in sequences])
    distinct, inverse = cut_sequences(tokens, ends)
    lengths = (distinct != NO_TOKEN).sum(axis=1)
    restored = [distinct[row, : lengths[row]].tolist() for row in inverse]
    assert restored == sequences
    assert len(distinct) == len({tuple(sequence) for sequence in sequences})
    seen = []
    for group in prefix_groups(distinct, smallest):
        assert (distinct[group.rows, : group.depth] == distinct[group.rows[0], : group.depth]).all()
        assert 0 <= group.depth < lengths[group.rows].min()
        for batch in length_batches(group.rows, lengths, smallest):
            assert lengths[batch[-1]] == lengths[batch].max()
            seen.extend(batch.tolist())
    assert sorted(seen) == list(range(len(distinct)))
