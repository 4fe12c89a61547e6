"""Training: optimisers against formulas, the trainer's bits, checkpoints, interrupts, the tool's files."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fenestra as fn
from fenestra import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ.get("FENESTRA_TOOL", "")
MPIRUN = os.environ.get("FENESTRA_MPIRUN", "")


def small_net(key=1):
    return nn.initialise(nn.Sequential(nn.Conv(1, 4, kernel=3), nn.BatchNorm(4), nn.Relu(), nn.Dropout(0.2), nn.Flatten(),
                                       head=nn.Linear(144, 10)), key)  # fmt: skip


def digits(count=160, **options):
    return nn.Loader(nn.open_dataset("digits").subset(range(count)), **{"batch": 32, "seed": 1, **options})


def same_numbers(a, b):
    return all(np.array_equal(x.numpy(), y.numpy()) for x, y in zip(a.tree_state().values(), b.tree_state().values(), strict=True))


# --- Optimisers, schedules, losses, metrics ---


def sgd(w, bars, rate, momentum):
    velocity = np.zeros_like(w)
    for bar in bars:
        velocity = momentum * velocity + bar
        w = w - rate * velocity
    return w


def adamw(w, bars, rate, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.01):
    mean = square = np.zeros_like(w)
    for t, bar in enumerate(bars, 1):
        mean = beta1 * mean + (1 - beta1) * bar
        square = beta2 * square + (1 - beta2) * bar**2
        w = w - rate * decay * w
        w = w - rate * (mean / (1 - beta1**t)) / (np.sqrt(square / (1 - beta2**t)) + epsilon)
    return w


@pytest.mark.parametrize("text,formula", [
    ("sgd rate=0.1 momentum=0.9", lambda w, bars: sgd(w, bars, 0.1, 0.9)),
    ("adamw rate=0.01 weight_decay=0.01", lambda w, bars: adamw(w, bars, 0.01))])  # fmt: skip
def test_optimisers_move_trees_as_their_formulas_say(text, formula, rng):
    start = {"a": rng.normal(size=(3, 2)), "b": [rng.normal(size=4)]}
    bars = [{"a": rng.normal(size=(3, 2)), "b": [rng.normal(size=4)]} for _ in range(20)]
    optimiser, p = nn.Optimiser(text), start
    for bar in bars:
        p = optimiser.update(p, bar)
    np.testing.assert_allclose(p["a"].numpy(), formula(start["a"], [b["a"] for b in bars]), rtol=1e-10)
    np.testing.assert_allclose(p["b"][0].numpy(), formula(start["b"][0], [b["b"][0] for b in bars]), rtol=1e-10)


@pytest.mark.parametrize("name", nn.optimiser_names())
def test_the_state_of_an_optimiser_goes_on_elsewhere(name, rng):
    start = {"w": rng.normal(size=5)}
    bars = [{"w": rng.normal(size=5)} for _ in range(6)]
    one = nn.Optimiser(name, rate=0.01)
    p = start
    for bar in bars[:3]:
        p = one.update(p, bar)
    other = nn.Optimiser(one.text)
    for wrong in (np.broadcast_to(1.0, (2**29, 2**29)), [("w", 1.0)], None):
        with pytest.raises(TypeError, match="set_state: .* is no dict"):
            other.set_state(p, wrong)
    other.set_state(p, one.state(p))
    for bar in bars[3:]:
        a, b = one.update(p, bar), other.update(p, bar)
        assert np.array_equal(a["w"].numpy(), b["w"].numpy())
        p = a


def test_a_network_of_ones_own_is_trained_by_an_optimiser(rng):
    x = rng.normal(size=(64, 2))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int)
    parameters = {"hidden": (rng.normal(size=(16, 2)), np.zeros(16)), "out": (rng.normal(size=(2, 16)) / 4, np.zeros(2))}

    @fn.compile
    def gradients(p, x, y):
        return fn.value_and_grad(lambda q: fn.cross_entropy(fn.linear(fn.tanh(fn.linear(x, *q["hidden"])), *q["out"]), y))(p)

    optimiser, schedule = nn.Optimiser("adam"), nn.Schedule("cosine").of_run(200, 10)
    for step in range(200):
        optimiser.rate = 0.05 * schedule(step)
        value, bars = gradients(parameters, x, y)
        bars, _ = nn.clip_by_norm(bars, 5.0)
        parameters = optimiser.update(parameters, bars)
    assert value.item() < 0.05


def test_clipping_and_metrics_against_numpy(rng):
    tree = {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=7)}
    norm = np.sqrt(sum(np.sum(v**2) for v in tree.values()))
    clipped, found = nn.clip_by_norm(tree, 0.5)
    assert found == pytest.approx(norm) and nn.global_norm(clipped) == pytest.approx(0.5)
    assert nn.global_norm(tree) == pytest.approx(norm)
    np.testing.assert_array_equal(nn.clip_by_value(tree, 0.3)["a"].numpy(), np.clip(tree["a"], -0.3, 0.3))
    scores, labels = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    np.testing.assert_array_equal(nn.predicted_classes(scores), scores.argmax(axis=1))
    matrix = nn.ConfusionMatrix(4)
    matrix.add(scores, labels)
    assert matrix.accuracy == np.mean(scores.argmax(axis=1) == labels) and matrix.total == 50
    counts = np.zeros((4, 4), int)
    np.add.at(counts, (labels, scores.argmax(axis=1)), 1)
    np.testing.assert_array_equal(matrix.counts, counts)
    order = np.argsort(-scores, axis=1)[:, :2]
    assert nn.top_k_correct(scores, labels, 2) == np.sum(order == labels[:, None])


@pytest.mark.parametrize("call,error,words", [
    (lambda: nn.Optimiser("rmspro"), ValueError, "'rmsprop'"), (lambda: nn.Optimiser("sgd", rat=1), ValueError, "rate"),
    (lambda: nn.Optimiser("sgd", rate=-1), ValueError, "rate"), (lambda: nn.Optimiser(""), ValueError, "adamw"),
    (lambda: nn.Optimiser(3), TypeError, "text"), (lambda: nn.Schedule("cosin"), ValueError, "cosine"),
    (lambda: nn.Loss("cross-entropi"), ValueError, "'cross-entropy'"), (lambda: nn.Schedule("step every=1epochs")(3), ValueError, "steps"),
    (lambda: nn.Optimiser("sgd").update({"a": np.ones(2)}, {"b": np.ones(2)}), ValueError, "structure"),
    (lambda: nn.Optimiser("sgd").update({"a": np.ones(2)}, {"a": np.ones(3)}), ValueError, ""),
    (lambda: nn.Optimiser("sgd").update([np.ones(2), np.ones(2, "float32")], [np.ones(2)] * 2), TypeError, "float64"),
    (lambda: nn.Loss("mse")(fn.ones((2, 3)), [0, 1]), TypeError, ""), (lambda: nn.ConfusionMatrix(0), ValueError, ""),
    (lambda: nn.Trainer(nn.Relu(), leaf=-1), ValueError, "leaf"), (lambda: nn.Trainer(nn.Relu(), tile=(0, 4)), ValueError, "tile"), (lambda: nn.Trainer(nn.Relu(), tile="4x4"), TypeError, "tile"),
    (lambda: nn.Trainer(nn.Relu(), tile=(4, 4), compiled=False), ValueError, "tiles"), (lambda: nn.Trainer(3), TypeError, "no model"), (lambda: nn.Trainer(nn.Relu(), loss=3), TypeError, "function"),
    (lambda: nn.Trainer(nn.Relu(), average=2), ValueError, "average"), (lambda: nn.Trainer(nn.Relu(), optimiser="sdg"), ValueError, "'sgd'"),
    (lambda: nn.Trainer(small_net()).fit([1], 1), TypeError, "no loader"),
    (lambda: nn.Trainer(small_net()).fit(digits(), -1), ValueError, "epochs"),
    (lambda: nn.Trainer(small_net()).fit(digits(), 1, on_step=3), TypeError, "on_step"),
    (lambda: nn.Trainer(small_net()).fit(digits(dtype="float64"), 1), TypeError, "Loader"),
    (lambda: nn.Trainer(small_net()).step(3), TypeError, "no batch"),
    (lambda: nn.Trainer(small_net()).step((np.ones((1, 1, 8, 8), "float32"), [10])), ValueError, ""),
    (lambda: nn.Trainer(small_net()).resume("no such file"), OSError, "no such file"),
    (lambda: nn.Trainer(small_net()).__class__.model.fset(nn.Trainer(small_net()), nn.Relu()), ValueError, "other parameters"),
    (lambda: nn.open_dataset("digit"), ValueError, "digits"), (lambda: nn.open_dataset("digits", "trian"), ValueError, "'test'"),
    (lambda: nn.open_dataset("folder:/no/such"), OSError, "/no/such"), (lambda: nn.Loader(3), TypeError, "no dataset"),
    (lambda: digits(batch=0), ValueError, "batch"), (lambda: digits(augmentation="shifd=1"), ValueError, "shift"),
    (lambda: nn.array_dataset(np.ones((2, 1, 2), int), [0, 1]), TypeError, "astype"),
    (lambda: nn.array_dataset(np.ones((2, 1, 2)), [0, 1, 1]), ValueError, ""),
    (lambda: nn.array_dataset(np.ones((2, 1, 2)), [0, -1]), ValueError, ""),
    (lambda: nn.open_dataset("digits")[5000], IndexError, "5000")])  # fmt: skip
def test_wrong_input_says_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- Data ---


def test_arrays_are_datasets_and_loaders_give_them_in_an_order_of_seed_and_epoch(rng):
    x, y = rng.normal(size=(10, 2, 3)).astype("float32"), np.arange(10) % 3
    data = nn.array_dataset(x, y, classes=["a", "b", "c"])
    assert (len(data), data.classes, data.task, data.sample_shape) == (10, ["a", "b", "c"], "classification", (2, 3))
    loader = nn.Loader(data, batch=4, seed=3)
    first = list(loader)
    assert [len(b.inputs) for b in first] == [4, 4, 2] and loader.cursor == (1, 0)
    which = np.concatenate([b.which for b in first])
    assert sorted(which) == list(range(10))
    np.testing.assert_array_equal(np.concatenate([np.asarray(b.inputs) for b in first]), x[which])
    np.testing.assert_array_equal(np.concatenate([b.labels for b in first]), y[which])
    second = [b.which for b in loader]
    loader.seek(0, 4)
    assert [b.which for b in loader] == [b.which for b in first[1:]] and second != [b.which for b in first]
    masks = nn.array_dataset(rng.normal(size=(3, 1, 4, 4)), rng.integers(0, 2, (3, 4, 4)))
    assert masks.task == "segmentation" and masks[1][1].shape == (4, 4)
    own = nn.array_dataset(rng.normal(size=(3, 1, 4)))
    assert own.task == "reconstruction" and np.array_equal(*own[-1])
    train, test = data.split(0.2, seed=1)
    assert (len(train), len(test)) == (8, 2)


def test_preprocessing_is_what_it_says(rng):
    x = rng.normal(2, 3, size=(50, 2, 4)).astype("float32")
    prepared = nn.normalisation_of(nn.array_dataset(x, np.zeros(50, int)))
    np.testing.assert_allclose(prepared.mean, x.mean(axis=(0, 2)), rtol=1e-5)
    loader = nn.Loader(nn.array_dataset(x, np.zeros(50, int)), batch=50, shuffle=False, preprocessing=prepared)
    inputs = np.asarray(next(iter(loader)).inputs)
    np.testing.assert_allclose(inputs.mean(axis=(0, 2)), 0, atol=1e-5)
    np.testing.assert_array_equal(nn.preprocess(prepared, x[7]).numpy(), inputs[7])


# --- The trainer ---


def test_eager_and_compiled_steps_have_the_same_bits():
    trainers = [nn.Trainer(small_net(), compiled=compiled, seed=4, clip_norm=1.0, average=0.9) for compiled in (True, False)]
    for batch in digits():
        results = [trainer.step(batch) for trainer in trainers]
        assert results[0].loss == results[1].loss and results[0].gradient_norm == results[1].gradient_norm > 0
    assert same_numbers(trainers[0].model, trainers[1].model)
    assert same_numbers(trainers[0].trained(), trainers[1].trained())
    assert not same_numbers(trainers[0].trained(), trainers[0].model)


def test_a_step_is_value_and_grad_and_the_optimiser():
    net = nn.initialise(nn.Sequential(nn.Flatten(dtype="float64"), nn.Linear(64, 10, dtype="float64")), 1)
    trainer, optimiser = nn.Trainer(net, optimiser="adamw rate=0.01", compiled=False), nn.Optimiser("adamw rate=0.01")
    for batch in digits(dtype="float64"):
        value, bars = fn.value_and_grad(lambda net: nn.Loss()(net(batch.inputs), batch.labels))(net)
        net = optimiser.update(net, bars)
        assert trainer.step(batch).loss == value.item()
    assert isinstance(net, nn.Sequential) and same_numbers(net, trainer.model)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_profile_names_layers_and_memory_and_trains_nothing(compiled):
    trainer, plain = (nn.Trainer(small_net(), compiled=compiled) for _ in range(2))
    batch = next(iter(digits()))
    trainer.step(batch)
    plain.step(batch)
    profile = trainer.profile(batch)
    assert profile.samples == 32
    parts = {part.name: part for part in profile.parts}
    assert {"0", "1", "head", "loss"} <= set(parts)
    assert parts["head"].forward > 0
    assert (parts["head"].backward is not None) == compiled
    assert profile.backward > 0
    numbers = sum(slot.size for slot in trainer.model.parameters().values())
    assert profile.memory.parameters == profile.memory.gradients == 4 * numbers
    assert profile.memory.optimiser == 8 * numbers
    assert (profile.memory.arena is not None) == (profile.memory.activations is not None) == compiled
    assert same_numbers(trainer.model, plain.model)
    with pytest.raises(TypeError, match="profile: int is no batch"):
        trainer.profile(3)


def test_one_batch_is_learned_by_heart_with_any_loss():
    x, y = next(iter(digits(16, batch=16)))[:2]
    mean = lambda scores, labels: fn.cross_entropy(scores, labels)
    for loss in ("cross-entropy", nn.Loss("focal gamma=1"), mean):
        trainer = nn.Trainer(small_net(), loss=loss, optimiser="adam rate=0.01")
        for _ in range(60):
            result = trainer.step((x, y))
        assert result.loss < 0.05 and result.correct == 16
    assert list(nn.predicted_classes(trainer.predict(x))) == list(y)


def test_functions_of_the_program_train_compiled_with_the_bits_of_eager_steps():
    def block(parts, x, pass_):
        return fn.relu(parts.norm(parts.conv(x), pass_)) * parts.scale

    def net():
        function = nn.Function(block, conv=nn.Conv(1, 4, kernel=3), norm=nn.BatchNorm(4), scale=np.ones((4, 1, 1)))
        return nn.initialise(nn.Sequential(function, nn.Flatten(), nn.Linear(144, 10)), 1)

    trainers = [nn.Trainer(net(), compiled=compiled) for compiled in (True, False)]
    assert [trainer.fit(digits(), 2).end for trainer in trainers] == ["finished"] * 2
    assert same_numbers(*(trainer.model for trainer in trainers))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_that_is_stopped_anywhere_and_resumed_ends_with_the_same_bits(compiled, tmp_path):
    def trainer():
        return nn.Trainer(small_net(), schedule="one-cycle", average=0.99, seed=7, compiled=compiled)

    loaders = dict(augmentation="shift=1,noise=0.1")
    whole = trainer()
    whole.fit(digits(**loaders), 3)
    path = tmp_path / "run.safetensors"
    for stop in (1, 4, 5, 9, 14):
        one = trainer()

        def stopping(result):
            if result.step + 1 == stop:
                raise StopIteration

        assert one.fit(digits(**loaders), 3, checkpoint=path, on_step=stopping).end == "stopped"
        other = nn.Trainer(small_net(key=9), optimiser="sgd")
        assert other.resume(path) == str(path) and other.steps == stop and other.options["seed"] == 7
        result = other.fit(digits(**loaders), 3)
        assert (result.end, result.epochs) == ("finished", 3)
        assert same_numbers(other.model, whole.model) and same_numbers(other.trained(), whole.trained())


def test_callbacks_see_every_step_and_epoch_and_their_errors_come_out(tmp_path):
    steps, epochs = [], []
    trainer = nn.Trainer(small_net())
    result = trainer.fit(digits(), 2, validation=digits(shuffle=False), on_step=steps.append, on_epoch=epochs.append)
    assert [s.step for s in steps] == list(range(10)) and [e.epoch for e in epochs] == [0, 1]
    assert steps[0].traced and not steps[1].traced and epochs[1].validation.confusion.total == 160
    assert result.validation.score == epochs[1].validation.score

    def wrong(result):
        raise KeyError("mine")

    path = tmp_path / "run.safetensors"
    for callback in ("on_step", "on_epoch"):
        trainer = nn.Trainer(small_net())
        with pytest.raises(KeyError, match="mine"):
            trainer.fit(digits(), 2, checkpoint=path, **{callback: wrong})
        other = nn.Trainer(small_net())
        other.resume(path)
        assert other.steps == trainer.steps == (1 if callback == "on_step" else 5)

    def reads(result):
        trainer.save(path)
        assert trainer.evaluate(digits()).samples == 160 and trainer.steps == result.step + 1
        with pytest.raises(RuntimeError, match="middle of a fit"):
            trainer.step(next(iter(digits())))
        raise StopIteration

    assert trainer.fit(digits(), 9, on_step=reads).end == "stopped"
    assert nn.Trainer(small_net()).fit(digits(), 1, on_epoch=lambda e: next(iter(()))).end == "stopped"


def test_an_interrupt_ends_a_fit_with_a_checkpoint(tmp_path):
    path = tmp_path / "run.safetensors"
    trainer = nn.Trainer(small_net())
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(digits(1000), 100_000, checkpoint=path)
    timer.join()
    other = nn.Trainer(small_net())
    other.resume(path)
    assert other.steps == trainer.steps > 0 and same_numbers(other.model, trainer.model)


def interrupted_after(seconds, f):
    """How long f takes to raise the KeyboardInterrupt of a signal."""
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        f()
    timer.join()
    return time.monotonic() - start


def test_an_interrupt_ends_an_evaluation_and_a_validation_between_batches(tmp_path):
    # Two million batches of one sample: the whole would take minutes.
    many = nn.Loader(nn.open_dataset("digits").subset([0] * 2_000_000), batch=1)
    trainer = nn.Trainer(small_net())
    assert interrupted_after(0.3, lambda: trainer.evaluate(many)) < 30
    assert trainer.evaluate(digits(64)).samples == 64
    path = tmp_path / "run.safetensors"
    assert interrupted_after(1, lambda: trainer.fit(digits(64), 1, validation=many, checkpoint=path)) < 30
    assert trainer.cursor == (0, 64) and trainer.steps == 2 and path.exists()
    result = trainer.fit(digits(64), 1, validation=digits(96))
    assert result.end == "finished" and result.validation.samples == 96 and trainer.steps == 2


def test_python_goes_on_while_a_trainer_trains_and_two_threads_are_refused():
    trainer, ticks, refused = nn.Trainer(small_net()), [], []
    done = threading.Event()

    def other():
        while not done.is_set():
            ticks.append(time.monotonic())
            try:
                trainer.predict(np.ones((1, 1, 8, 8), "float32"))
            except RuntimeError as error:
                refused.append(str(error))
            time.sleep(0.001)

    thread = threading.Thread(target=other)
    started = threading.Event()

    def first(result):
        if not started.is_set():
            started.set()
            thread.start()
        if len(refused) > 3:
            raise StopIteration

    try:
        assert trainer.fit(digits(), 2000, on_step=first).end == "stopped"
    finally:
        done.set()
        thread.join()
    assert len(ticks) > 3 and "another thread" in refused[0]


def test_patience_and_divergence_end_a_fit():
    trainer = nn.Trainer(small_net(), optimiser="sgd rate=0")
    assert trainer.fit(digits(), 50, validation=digits(), patience=2).end == "patience"
    trainer = nn.Trainer(nn.initialise(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), 1), optimiser="sgd rate=1e38")
    assert trainer.fit(digits(), 50).end == "diverged"


def test_a_model_is_changed_by_assigning_another():
    trainer = nn.Trainer(small_net())
    model = trainer.model
    model.update({"head.bias": np.full(10, 3, "float32")})
    assert not same_numbers(trainer.model, model)
    trainer.model = model
    assert same_numbers(trainer.model, model)
    trainer.step(next(iter(digits())))
    assert not same_numbers(trainer.model, model)


# --- The tool and the examples ---


@pytest.mark.skipif(not TOOL or not os.path.exists(TOOL), reason="the tool is not built")
def test_the_tool_and_python_write_the_same_bytes_and_go_on_with_each_other(tmp_path):
    run = tmp_path / "run"
    command = [TOOL, "train", "lenet", "--data", "digits", "--epochs", "1", "--seed", "3", "--augmentation", "shift=1", "--loss", "cross-entropy", "--output", run]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env={**os.environ, "FENESTRA_DATA": str(ROOT / "data")})
    data = nn.open_dataset("digits")
    prepared = nn.normalisation_of(data)._replace(size=[28, 28])
    net = nn.initialise(nn.lenet(classes=10, channels=1), nn.Key(3).fold("weights"))
    trainer = nn.Trainer(net, optimiser="adamw rate=0.002", schedule="one-cycle", seed=3)
    loader = nn.Loader(data, batch=32, seed=3, augmentation="shift=1", preprocessing=prepared)
    trainer.fit(loader, 1)
    theirs = nn.load_info(run / "model.safetensors")
    nn.save_model(tmp_path / "ours.safetensors", trainer.trained(), nn.ModelInfo(
        "lenet on digits", data.classes, prepared, theirs.more))  # fmt: skip
    assert (tmp_path / "ours.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    resumed = nn.Trainer(nn.lenet(classes=10, channels=1))
    resumed.resume(run / "checkpoint.safetensors")
    assert same_numbers(resumed.model, trainer.model) and resumed.steps == trainer.steps and resumed.cursor == (1, 0)


def test_the_example_trains_saves_loads_and_compiles(tmp_path):
    folder = ROOT / "examples" / "python"
    path = str(tmp_path / "mobilenet.safetensors")
    output = ""
    for script, *more in (["mobilenet.py", path, "1"], ["mobilenet_infer.py", path]):
        ran = subprocess.run([sys.executable, folder / script, *more], capture_output=True, text=True, check=True, cwd=ROOT)
        output += ran.stdout
    assert "held-out digits are right" in output and "a 9" in output
    code = [line for name in ("mobilenet.py", "mobilenet_infer.py")
            for line in (folder / name).read_text().split('"""')[2].splitlines() if line.strip()]  # fmt: skip
    assert len(code) <= 30
    code = [line for name in ("mobilenet.cpp", "mobilenet_infer.cpp")
            for line in (ROOT / "examples" / name).read_text().splitlines()
            if line.strip() and not line.lstrip().startswith("//")]  # fmt: skip
    assert len(code) <= 45


# --- Leaves and processes ---


def test_a_leaf_as_large_as_the_batch_is_the_plain_step():
    trainers = [nn.Trainer(small_net(), seed=3, leaf=leaf) for leaf in (0, 32, 8)]
    for batch in digits(64):
        for trainer in trainers:
            trainer.step(batch)
    plain, large, small = (trainer.model for trainer in trainers)
    assert same_numbers(plain, large)
    assert not same_numbers(plain, small)
    assert trainers[2].options["leaf"] == 8


def test_tiles_are_leaves_and_a_tile_of_everything_is_the_whole_picture():
    net = nn.initialise(nn.Sequential(nn.Conv(1, 3, kernel=3, padding=1), nn.Relu(), nn.Conv(3, 2, kernel=3, padding=1)), 1)
    rng = np.random.default_rng(1)
    batch = (rng.random((2, 1, 8, 12), dtype=np.float32), rng.integers(0, 2, (2, 8, 12)))
    trainers = [nn.Trainer(net, leaf=2, tile=tile) for tile in ((), (8, 12), (4, 4))]
    results = [trainer.step(batch) for trainer in trainers]
    assert [result.labels for result in results] == [2 * 8 * 12] * 3
    whole, one, cut = (trainer.model for trainer in trainers)
    assert same_numbers(whole, one) and not same_numbers(whole, cut)
    assert trainers[2].options["tile"] == (4, 4) and trainers[0].options["tile"] == ()
    np.testing.assert_array_equal(trainers[2].predict(batch[0]).numpy(), cut(batch[0]).numpy())


RANK = """
import sys
from fenestra import nn
sys.path.insert(0, sys.argv[1])
from test_training import digits, small_net
communicator = nn.mpi_communicator() if sys.argv[3] == "mpi" else None
trainer = nn.Trainer(small_net(), seed=3, leaf=8, communicator=communicator)
trainer.fit(digits(), 1, validation=digits(40, shuffle=False), checkpoint=sys.argv[2])
"""


MPI_ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1"}  # fmt: skip


@pytest.mark.skipif(not MPIRUN, reason="no MPI")
def test_any_number_of_processes_has_the_bits_of_one(tmp_path):
    files = []
    for ranks in (0, 1, 3):
        launcher = [MPIRUN, "-n", str(ranks)] if ranks else []
        files.append(tmp_path / f"{ranks}.safetensors")
        script = [sys.executable, "-B", "-c", RANK, str(pathlib.Path(__file__).parent), str(files[-1]), "mpi" if ranks else "alone"]
        subprocess.run([*launcher, *script], env=MPI_ENVIRONMENT, check=True, timeout=200)
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()


@pytest.mark.skipif(not MPIRUN, reason="no MPI")
def test_a_process_with_an_error_does_not_leave_the_others_waiting():
    script = ("from fenestra import nn; c = nn.mpi_communicator(); x = nn.initialise(nn.Linear(2, 2), 1)\n"
              "if c.rank == 1: raise RuntimeError('only here')\n"
              "nn.Trainer(x, leaf=1, communicator=c).step(([[1.0, 2.0]], [0]))")
    done = subprocess.run([MPIRUN, "-n", "2", sys.executable, "-c", script], env=MPI_ENVIRONMENT, capture_output=True, text=True, timeout=200)
    assert done.returncode != 0 and "only here" in done.stderr
