"""scrimp: black-box attacks on text models that spend as few queries as they can.

import scrimp
results = scrimp.attack(my_model, [("a fine film", 1)], "pwws", budget=200)
print(results)
"""

from .attacks.engine import Engine
from .attacks.goals import Misclassify, Shift, Target
from .attacks.recipes import RECIPES, Recipe
from .attacks.record import Record
from .attacks.types import Ask, Example, Ranking, Search, Victim
from .benchmarks.data import read_examples
from .benchmarks.records import read_records
from .benchmarks.results import Results
from .benchmarks.run import attack
from .ranking import RANKINGS
from .search import SEARCHES
from .spaces import SPACES
from .victims import VICTIMS, labels_only, load_victim, wrap

__version__ = "0.1.0"

__all__ = [
    "RANKINGS",
    "RECIPES",
    "SEARCHES",
    "SPACES",
    "VICTIMS",
    "Ask",
    "Engine",
    "Example",
    "Misclassify",
    "Ranking",
    "Recipe",
    "Record",
    "Results",
    "Search",
    "Shift",
    "Target",
    "Victim",
    "attack",
    "labels_only",
    "load_victim",
    "read_examples",
    "read_records",
    "wrap",
]
