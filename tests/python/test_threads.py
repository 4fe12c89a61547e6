"""Python threads: the same results, and none waits for another's kernel. Processes: children that
are forked or started anew compute, with threads, and a bad variable is an error that names it."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fenestra as fn


def run_in_threads(work, count=4):
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:  # shown by the thread that started us
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_calls_and_gradients_from_several_threads_give_the_same_bits(rng):
    x, w = rng.normal(size=(4, 3, 16, 16)), rng.normal(size=(8, 3, 3, 3))
    loss = lambda w: fn.mean(fn.relu(fn.conv2d(x, w, padding=1)) ** 2)
    expected = fn.grad(loss)(w).numpy().copy()

    def work(_):
        for _ in range(20):
            np.testing.assert_array_equal(fn.grad(loss)(w).numpy(), expected)

    run_in_threads(work)


def test_the_interpreter_runs_while_a_kernel_does(rng):
    """A kernel in one thread, counting in another: with the lock held, nothing would be counted."""
    x, w = rng.normal(size=(8, 64, 64, 64)), rng.normal(size=(64, 64, 3, 3))
    inside = threading.Event()
    counted = []

    def kernel():
        inside.set()
        fn.conv2d(x, w, padding=1)
        inside.clear()

    thread = threading.Thread(target=kernel)
    thread.start()
    inside.wait()
    while inside.is_set():
        counted.append(time.perf_counter())
        time.sleep(0)
    thread.join()
    # The kernel takes tens of milliseconds; without releasing the lock, the first count would come
    # after its end and be the only one.
    assert len(counted) > 10


def test_no_grad_belongs_to_its_thread():
    tape = fn.Tape()
    x = tape.parameter(2.0)

    def work(_):
        assert (x * x).is_tracked

    with fn.no_grad():
        run_in_threads(work, 1)
        assert not (x * x).is_tracked


def test_one_tape_may_be_used_by_several_threads():
    tape = fn.Tape()
    x = tape.parameter(np.ones(1000))
    sums = [None] * 4

    def work(i):
        total = x
        for _ in range(100):
            total = total + x
        sums[i] = fn.sum(total)

    run_in_threads(work)
    total = sums[0] + sums[1] + sums[2] + sums[3]
    np.testing.assert_array_equal(tape.backward(total)[x].numpy(), np.full(1000, 404.0))


def test_the_number_of_threads_changes_no_bit(rng):
    x, w = rng.normal(size=(4, 8, 32, 32)), rng.normal(size=(8, 8, 3, 3))
    before = fn.threads()
    results = []
    for count in (1, 2, 3):
        fn.set_threads(count)
        assert fn.threads() == count
        results.append(fn.conv2d(x, w).numpy())
    fn.set_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def convolution(seed):
    """Large enough for several threads; at module level, where a started child finds it."""
    fn.set_threads(3)
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(4, 16, 48, 48)), rng.normal(size=(32, 16, 3, 3))
    return fn.conv2d(x, w, padding=1).numpy()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_compute(method):
    before = fn.threads()
    expected = [convolution(seed) for seed in range(4)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map_async(convolution, range(4)).get(timeout=120)
    fn.set_threads(before)
    for result, value in zip(results, expected):
        np.testing.assert_array_equal(result, value)


def test_a_child_that_is_forked_while_a_kernel_runs_computes():
    before = fn.threads()
    expected = convolution(1)
    ends = threading.Event()

    def compute():
        while not ends.is_set():
            convolution(2)

    other = threading.Thread(target=compute)
    other.start()
    try:
        for _ in range(3):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                result = pool.apply_async(convolution, (1,)).get(timeout=120)
            np.testing.assert_array_equal(result, expected)
    finally:
        ends.set()
        other.join()
        fn.set_threads(before)


@pytest.mark.parametrize("value", ["abc", "0", "-1", "99999999999", " 2x"])
def test_a_bad_number_in_the_environment_is_an_error_that_names_the_variable(value):
    program = (
        "import numpy as np, fenestra as fn\n"
        "def refused(call):\n"
        "    try:\n"
        "        call()\n"
        "    except ValueError as error:\n"
        "        return (error.code == 'bad-environment' and '1 to 1024' in str(error)\n"
        "                and 'FENESTRA_THREADS' in str(error))\n"
        "    return False\n"
        "x, w = np.ones((4, 16, 48, 48)), np.ones((32, 16, 3, 3))\n"
        "assert refused(fn.threads)\n"
        "assert refused(lambda: fn.conv2d(x, w))\n"
        "fn.set_threads(2)\n"
        "assert fn.threads() == 2\n"
        "assert fn.conv2d(x, w).numpy()[0, 0, 0, 0] == 144\n")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120,
                   env=dict(os.environ, FENESTRA_THREADS=value))


@pytest.mark.parametrize("count", [0, -1, 1025, 100000])
def test_the_number_of_threads_has_bounds(count):
    before = fn.threads()
    with pytest.raises(ValueError, match="1 to 1024"):
        fn.set_threads(count)
    assert fn.threads() == before
