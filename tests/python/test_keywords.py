"""Arguments by name go through every transform, and may be what is differentiated by."""

import numpy as np
import pytest

import fenestra as fn

W, X = np.array([1.0, 2.0]), np.array([3.0, 4.0])


def f(w, x=X, *, scale=1.0, power=1):
    return fn.sum(scale * w * x**power)


def same(found, expected):
    found, expected = fn.tree_flatten(found), fn.tree_flatten(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("call", [
    lambda g: g(W, X, scale=2.0), lambda g: g(W, x=X, scale=2.0), lambda g: g(w=W, x=X, scale=2.0),
    lambda g: g(scale=2.0, x=X, w=W), lambda g: g(W, scale=2.0),
])
def test_the_first_argument_is_found_however_it_is_passed(call):
    same(call(fn.grad(f)), 2 * X)
    same(call(fn.value_and_grad(f)), (np.sum(2 * W * X), 2 * X))
    same(call(fn.jacrev(f)), 2 * X)
    same(call(fn.jacfwd(f)), 2 * X)


@pytest.mark.parametrize("transform", [fn.grad, fn.jacrev, fn.jacfwd])
def test_names_choose_what_is_differentiated(transform):
    same(transform(f, argnames="x")(W, X), W)
    same(transform(f, argnames="x")(W, x=X), W)
    same(transform(f, argnames="scale")(W, X, scale=2.0), np.sum(W * X))
    found = transform(f, argnames=["scale", "w"])(W, scale=np.array(2.0))
    assert list(found) == ["scale", "w"]
    same(found, {"scale": np.sum(W * X), "w": 2 * X})
    same(transform(f, argnums=1)(W, x=X), W)


def test_names_of_trees_and_of_functions_that_take_anything():
    g = lambda *args, **parameters: fn.sum(parameters["net"]["w"] * args[0])
    same(fn.grad(g, argnames="net")(X, net={"w": W}), {"w": X})
    same(fn.grad(g, argnums=0)(X, net={"w": W}), W)
    same(fn.grad(fn.grad(lambda x, *, k: x**3 * k), argnames="k")(2.0, k=np.array(5.0)), 12.0)


def test_other_transforms_hand_arguments_by_name_on():
    y, pullback = fn.vjp(f, W, X, scale=2.0)
    same((y, pullback(1.0)), (22.0, (2 * X, 2 * W)))
    same(fn.jvp(f, (W, X), (W, X), scale=2.0), (22.0, 44.0))
    same(fn.hvp(lambda w, *, k: k * fn.sum(w**3), (W,), (W,), k=2.0), 12 * W * W)
    assert fn.gradcheck(f, W, X, scale=3.0, power=2)


def test_samples_may_be_passed_by_name():
    x, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    same(fn.vmap(lambda x, *, y, k: fn.sum(x) * y * k)(x, y=y, k=2), 2 * x.sum(1) * y)
    loss = lambda w, x, *, y, k=1: k * y * fn.sum(w * x)
    same(fn.per_sample_grad(loss)(W, x, y=y, k=2), 2 * x * y[:, None])
    same(fn.per_sample_grad(loss)(W, x=x, y=y), x * y[:, None])
    same(fn.per_sample_grad(loss, argnames="w")(y=y, w=W, x=x), x * y[:, None])
    labels = np.array([0, 1, 0])
    entropy = lambda w, *, x, label: fn.cross_entropy(w * x, label)
    found = fn.per_sample_grad(entropy)(W, x=x, label=labels)
    same(found, np.stack([np.asarray(fn.grad(entropy)(W, x=a, label=b)) for a, b in zip(x, labels)]))


@pytest.mark.parametrize("call, error, text", [
    (lambda: fn.grad(f, argnames="q")(W, x=X), ValueError, "without q\n.*w, x"),
    (lambda: fn.grad(f, argnames="x")(W), ValueError, "without x"),
    (lambda: fn.grad(f, argnames=3), TypeError, "argnames is int"),
    (lambda: fn.grad(f, argnames=[3]), TypeError, "argnames is list"),
    (lambda: fn.grad(f, argnums="w"), TypeError, "argnums is str"),
    (lambda: fn.grad(f, 0, "w"), TypeError, "both given"),
    (lambda: fn.grad(f, 2)(W, x=X), ValueError, "argnums = 2"),
    (lambda: fn.grad(f)(), ValueError, "argnums = 0.*\n.*call it with some"),
    (lambda: fn.grad(f)(W, depth=3), TypeError, "unexpected keyword argument 'depth'"),
    (lambda: fn.per_sample_grad(f, argnames="q")(W), ValueError, "per_sample_grad: .*without q"),
])
def test_mistakes_say_what_they_are(call, error, text):
    with pytest.raises(error, match=text):
        call()
