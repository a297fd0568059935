"""Names of clusters: the nouns that tell each cluster from the rest of the collection."""

from nouncut.naming.assignment import assign_names
from nouncut.naming.concepts import Concept, find_concepts, pool_narrower
from nouncut.naming.evidence import cluster_probabilities, information, spread_tau
from nouncut.naming.names import ClusterName, name_clusters
from nouncut.naming.preference import is_taxon, mentions, readability
from nouncut.naming.senses import broader_synsets, choose_senses, short_gloss

__all__ = [
    "ClusterName",
    "Concept",
    "assign_names",
    "broader_synsets",
    "choose_senses",
    "cluster_probabilities",
    "find_concepts",
    "information",
    "is_taxon",
    "mentions",
    "name_clusters",
    "pool_narrower",
    "readability",
    "short_gloss",
    "spread_tau",
]
