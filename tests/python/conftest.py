"""What the tests of the Python module share."""

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    """Random numbers that depend on the test alone, so that a failure comes back."""
    seed = sum(map(ord, request.node.name))
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    import fenestra as fn
    import fenestra.trees

    doctest_namespace["fn"] = fn
    doctest_namespace["np"] = np
    doctest_namespace["tree_flatten"] = fenestra.trees.tree_flatten
    doctest_namespace["tree_map"] = fenestra.trees.tree_map
