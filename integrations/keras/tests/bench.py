#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times an epoch of two networks with the backend that KERAS_BACKEND names: KERAS_BACKEND=torch bench.py [--samples N]

The networks are those of Keras' examples for MNIST and for movie reviews. Data are random. The first epoch is not counted.
"""
import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "compute")

if os.environ["KERAS_BACKEND"] == "compute":
    import keras_compute  # noqa: F401  before keras

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402


def images(samples, random):
    model = keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dropout(0.5),
        layers.Dense(10, activation="softmax")])
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    labels = keras.utils.to_categorical(random.integers(0, 10, samples), 10)
    return model, random.random((samples, 28, 28, 1), np.float32), labels, 128


def reviews(samples, random):
    model = keras.Sequential([
        layers.Embedding(5000, 50), layers.Dropout(0.2), layers.Conv1D(250, 3, padding="valid", activation="relu"),
        layers.GlobalMaxPooling1D(), layers.Dense(250), layers.Dropout(0.2), layers.Activation("relu"), layers.Dense(1),
        layers.Activation("sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
    return model, random.integers(1, 5000, (samples, 400)), random.integers(0, 2, samples).astype("float32"), 32


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1280)
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    for network in (images, reviews):
        model, x, y, batch = network(given.samples, np.random.default_rng(1))
        times = []
        for _ in range(given.epochs + 1):
            start = time.perf_counter()
            model.fit(x, y, batch_size=batch, epochs=1, verbose=0)
            times.append(time.perf_counter() - start)
        best = min(times[1:])
        print(f"{keras.backend.backend():8} {network.__name__:8} {best:7.3f} s an epoch of {given.samples}, "
              f"{1e3 * best * batch / given.samples:7.2f} ms a step", flush=True)


if __name__ == "__main__":
    main()
