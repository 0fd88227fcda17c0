"""A PyTorch network on the 1797 digits: a step of its SDE against its own forward and backward over all samples.

    taskset -c 0 python benchmarks/torch_step.py [--loss squared]

64-64-10, tanh, d = 4810, float64, one thread, CPU time, medians over rounds of runs beside each other, so that other
work on the machine hardly counts. The bar: a step of the SDE, with its 1797 normal numbers, weights and all checks, at
most 1.1 times what PyTorch takes for the mean loss and its gradient. Batch-1 SGD is shown beside a
loop of PyTorch's own, without a bar.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import sgdsde as sg

GRADIENTS, STEPS, REPEATS, ETA = 60, 500, 15, 1e-3


def squared(outputs, y):
    return ((outputs - y) ** 2).sum(1)


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main(kind):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    X, Y = digits.data / 16, digits.target if kind == "softmax" else np.eye(10)[digits.target]
    loss = torch.nn.CrossEntropyLoss(reduction="none") if kind == "softmax" else squared
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10)).double()
    model = sg.models.from_torch(net, loss)
    problem = sg.SGD(model, X, Y, learning_rate=ETA)
    theta, sde, span = model.theta0, problem.sde(), (0.0, GRADIENTS * ETA)
    x, y = torch.tensor(X), torch.tensor(Y)

    def own_gradients():
        for _ in range(GRADIENTS):
            net.zero_grad()
            loss(net(x), y).mean().backward()

    def own_steps():
        for i in np.random.default_rng(0).integers(0, len(X), STEPS):
            net.zero_grad()
            loss(net(x[i : i + 1]), y[i : i + 1]).mean().backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.0 * p.grad  # the network stays where it is

    runs = {
        "PyTorch, forward and backward": own_gradients,
        "SDE step": lambda: sg.solve(sde, span, theta, rng=0, threads=1, keep="final"),
        "PyTorch, a step of batch 1": own_steps,
        "SGD step, batch 1": lambda: problem.run(theta, STEPS, rng=0, threads=1, keep="final"),
    }
    own_gradients()
    found = np.concatenate([p.grad.numpy().ravel() for p in net.parameters()])
    assert np.abs(found - problem.gradient(theta)).max() < 1e-13, "another gradient"
    each = {name: STEPS if "batch 1" in name else GRADIENTS for name in runs}
    times = {name: [] for name in runs}
    with threadpool_limits(1):
        for run in runs.values():
            run()
        for _ in range(REPEATS):
            for name, run in runs.items():
                times[name].append(seconds(run) / each[name])
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:34} {value * 1e6:8.1f} µs")
    first, second, third, fourth = (np.array(values) for values in times.values())
    ratio = np.median(second / first)  # of runs beside each other, which see the same machine
    print(f"{'SDE step / PyTorch':34} {ratio:8.3f}      bar 1.1: {'met' if ratio <= 1.1 else 'MISSED'}")
    print(f"{'SGD step / PyTorch, batch 1':34} {np.median(fourth / third):8.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loss", default="softmax", choices=["softmax", "squared"])
    main(parser.parse_args().loss)
