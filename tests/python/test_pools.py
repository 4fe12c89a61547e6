"""How many spatial axes a pool has: by its name, by a list, and refused where neither says it."""

import numpy as np
import pytest

import fenestra as fn

SAMPLE = np.arange(3 * 4 * 6.0).reshape(3, 4, 6)
POOLS = {
    "max_pool": (2,), "avg_pool": (2,), "lp_pool": (2, 2), "smooth_max_pool": (2,),
    "adaptive_max_pool": (2,), "adaptive_avg_pool": (2,), "global_max_pool": (),
    "global_avg_pool": (),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_every_pool_has_names_with_numbers(name):
    for rank in (1, 2, 3):
        x = np.ones((2, 3) + (4,) * rank)
        batch = getattr(fn, f"{name}{rank}d")(x, *POOLS[name])
        sample = getattr(fn, f"{name}{rank}d")(x[0], *POOLS[name])
        assert batch.shape[1:] == sample.shape and len(sample.shape) == rank + 1
        np.testing.assert_array_equal(np.asarray(batch)[0], np.asarray(sample))


@pytest.mark.parametrize("layout, readings", [("channels_first", r"\(N, C, L\).*\(C, H, W\)"),
                                              ("channels_last", r"\(N, L, C\).*\(H, W, C\)")])
@pytest.mark.parametrize("name", POOLS)
def test_three_axes_and_one_size_have_two_readings(name, layout, readings):
    pool = lambda x: getattr(fn, name)(x, *POOLS[name], layout=layout)
    for call, x in ((pool, SAMPLE), (fn.vmap(pool), SAMPLE[None]), (fn.grad(lambda x: fn.sum(pool(x))), SAMPLE)):
        with pytest.raises(ValueError, match=rf"(?s){name}: .*\(3, 4, 6\).*{readings}.*{name}1d or {name}2d") as caught:
            call(x)
        assert caught.value.code == "rank-mismatch"


def test_an_unpool_has_two_readings_too():
    y, indices = fn.max_pool2d(SAMPLE, 2, return_indices=True)
    with pytest.raises(ValueError, match=r"max_unpool1d or max_unpool2d, or kernel_size=\[2\] or \[2, 2\]"):
        fn.max_unpool(y, indices, 2)
    for unpooled in (fn.max_unpool2d(y, indices, 2), fn.max_unpool(y, indices, [2, 2]),
                     fn.max_unpool(y, indices, 2, output_size=(4, 6))):
        assert unpooled.shape == SAMPLE.shape


def test_a_list_says_it_and_so_do_more_axes():
    assert fn.max_pool(SAMPLE, [2]).shape == (3, 4, 3)
    assert fn.max_pool(SAMPLE, (2, 2)).shape == (3, 2, 3)
    assert fn.max_pool(SAMPLE[None], 2).shape == (1, 3, 2, 3)
    assert fn.max_pool(SAMPLE[None, None], 2).shape == (1, 1, 1, 2, 3)
    assert fn.vmap(lambda x: fn.max_pool2d(x, 2))(SAMPLE[None]).shape == (1, 3, 2, 3)
    assert fn.adaptive_avg_pool(SAMPLE, (1, 1)).shape == (3, 1, 1)
