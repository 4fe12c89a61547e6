"""Python threads: the same results, and none waits for another's kernel."""

import threading
import time

import numpy as np

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
