# SPDX-License-Identifier: Apache-2.0
"""Gradients, training, saving, and how programs get the backend."""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np
from case import Case, keras, ops
from keras import layers
from keras_compute.src.gradients import gradients_of

HERE = pathlib.Path(__file__).parent


class Gradients(Case):
    def check(self, model, *inputs, tolerance=2e-2):
        """Compares the gradient along a direction with the difference of two losses."""
        weights = model.trainable_weights
        aim = self.values(*model(*inputs).shape)

        def loss():
            return ops.sum(model(*inputs) * aim)

        _, gradients = gradients_of(loss, weights)
        values = [weight.numpy() for weight in weights]
        directions = [self.values(*value.shape) for value in values]
        step, ends = 2e-3, []
        for sign in (1, -1):
            for weight, value, direction in zip(weights, values, directions):
                weight.assign(value + sign * step * direction)
            ends.append(float(loss()))
        for weight, value in zip(weights, values):
            weight.assign(value)
        expected = (ends[0] - ends[1]) / (2 * step)
        found = sum(float(np.sum(ops.convert_to_numpy(g).astype(float) * d)) for g, d in zip(gradients, directions))
        self.assertLess(abs(found - expected), tolerance * max(1.0, abs(expected)))
        self.assertGreater(abs(expected), 1e-2)

    def test_convolutions(self):
        self.check(keras.Sequential([keras.Input((8, 8, 2)), layers.Conv2D(3, 3, padding="same"), layers.Activation("tanh"),
                                     layers.AveragePooling2D(2), layers.SeparableConv2D(4, 2), layers.Conv2DTranspose(2, 3, strides=2),
                                     layers.Flatten(), layers.Dense(3)]), self.values(2, 8, 8, 2))

    def test_recurrent(self):
        for layer in (layers.LSTM(4), layers.GRU(4), layers.Bidirectional(layers.SimpleRNN(3))):
            self.check(keras.Sequential([keras.Input((5, 3)), layer, layers.Dense(2)]), self.values(2, 5, 3))

    def test_attention_and_norms(self):
        x = keras.Input((4, 6))
        y = layers.MultiHeadAttention(2, 3)(x, x)
        y = layers.LayerNormalization()(layers.Add()([x, y]))
        y = layers.GroupNormalization(2)(layers.Dense(6, activation="gelu")(y))
        self.check(keras.Model(x, y), self.values(2, 4, 6))

    def test_custom_gradient(self):
        @ops.custom_gradient
        def doubled(x):
            return x * 2, lambda x, upstream: upstream * 5

        x = keras.Variable(np.ones(3, np.float32))
        value, gradients = gradients_of(lambda: ops.sum(doubled(x)), [x])
        self.close(value, 6)
        self.close(gradients[0], [5, 5, 5])

    def test_stop_gradient(self):
        x = keras.Variable(np.full(3, 2.0, np.float32))
        _, gradients = gradients_of(lambda: ops.sum(x * ops.stop_gradient(x)), [x])
        self.close(gradients[0], [2, 2, 2])


class Training(Case):
    def test_steps_are_those_of_gradient_descent(self):
        x, y = self.values(32, 3), self.values(32, 1)
        layer = layers.Dense(1)
        model = keras.Sequential([keras.Input((3,)), layer])
        w, b = (value.numpy().astype(float) for value in layer.weights)
        model.compile("sgd", "mse")
        model.optimizer.learning_rate = 0.1
        history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        for _ in range(2):
            losses = []
            for at in range(0, 32, 8):
                part, target = x[at:at + 8].astype(float), y[at:at + 8]
                error = part @ w + b - target
                losses.append(np.mean(error ** 2))
                w, b = w - 0.1 * 2 * part.T @ error / 8, b - 0.1 * 2 * error.mean(0)
        self.close(layer.kernel, w)
        self.close(layer.bias, b)
        self.assertAlmostEqual(history.history["loss"][-1], np.mean(losses), places=4)

    def digits(self, count):
        """Images with a bright patch whose place is the class."""
        labels = self.random.integers(0, 4, count)
        images = self.random.random((count, 12, 12, 1)).astype(np.float32) * 0.5
        for image, label in zip(images, labels):
            image[6 * (label // 2):6 * (label // 2) + 6, 6 * (label % 2):6 * (label % 2) + 6] += 0.5
        return images, labels

    def test_convnet(self):
        (x, labels), (x_test, labels_test) = self.digits(256), self.digits(64)
        model = keras.Sequential([keras.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(2),
                                  layers.BatchNormalization(), layers.Flatten(), layers.Dropout(0.3),
                                  layers.Dense(4, activation="softmax")])
        model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
        model.optimizer.learning_rate = 0.01
        seen = []
        callbacks = [keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(sorted(logs))),
                     keras.callbacks.EarlyStopping(monitor="val_loss", patience=5),
                     keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.95)]
        model.fit(x, keras.utils.to_categorical(labels, 4), batch_size=32, epochs=6, validation_split=0.2, callbacks=callbacks,
                  verbose=2)
        self.assertEqual(seen[0], ["accuracy", "loss", "val_accuracy", "val_loss"])
        loss, accuracy = model.evaluate(x_test, keras.utils.to_categorical(labels_test, 4), verbose=0)
        self.assertGreater(accuracy, 0.9)
        found = model.predict(x_test, verbose=0)
        self.close(found.sum(-1), np.ones(64))
        self.assertAlmostEqual(float(np.mean(found.argmax(-1) == labels_test)), accuracy, places=5)

    def test_words(self):
        x = self.random.integers(1, 50, (256, 20))
        labels = (x < 5).any(1).astype("float32")
        model = keras.Sequential([layers.Embedding(50, 16), layers.Conv1D(16, 3, activation="relu"), layers.GlobalMaxPooling1D(),
                                  layers.Dense(1), layers.Activation("sigmoid")])
        model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.02), metrics=["accuracy"])
        history = model.fit(x, labels, batch_size=32, epochs=6, verbose=0)
        self.assertGreater(history.history["accuracy"][-1], 0.9)

    def test_lstm(self):
        x = self.values(256, 8, 1)
        model = keras.Sequential([keras.Input((8, 1)), layers.LSTM(8), layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.03), "mse")
        history = model.fit(x, x.sum(1), batch_size=64, epochs=10, verbose=0)
        self.assertLess(history.history["loss"][-1], 0.3 * history.history["loss"][0])

    def test_two_inputs_saved_and_loaded(self):
        one, other = keras.Input((3,), name="one"), keras.Input((2,), name="other")
        hidden = layers.Concatenate()([layers.Dense(4, activation="relu")(one), other])
        model = keras.Model([one, other], [layers.Dense(1, name="sum")(hidden), layers.Dense(2, name="pair")(hidden)])
        x, y = [self.values(16, 3), self.values(16, 2)], [self.values(16, 1), self.values(16, 2)]
        model.compile("rmsprop", ["mse", "mae"])
        model.fit(x, y, epochs=2, verbose=0)
        expected = model.predict(x, verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "model.keras"))
            loaded = keras.models.load_model(os.path.join(folder, "model.keras"))
            self.close(loaded.predict(x, verbose=0), expected)
            model.save_weights(os.path.join(folder, "model.weights.h5"))
            model.optimizer.learning_rate = 1.0
            model.fit(x, y, epochs=1, verbose=0)
            model.load_weights(os.path.join(folder, "model.weights.h5"))
            self.close(model.predict(x, verbose=0), expected)
        loaded.fit(x, y, epochs=1, verbose=0)  # goes on with the optimizer's state

    def test_own_train_step(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = layers.Dense(1)

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                loss, gradients = gradients_of(lambda: ops.mean(ops.square(self(x) - y)), self.trainable_weights)
                self.optimizer.apply(gradients, self.trainable_weights)
                return {"error": loss}

        x = self.values(64, 3)
        model = Own()
        model.compile("adam")
        model.optimizer.learning_rate = 0.1
        model(x[:1])
        history = model.fit(x, x.sum(1, keepdims=True), epochs=10, verbose=0)
        self.assertLess(history.history["error"][-1], history.history["error"][0])

    def test_own_layer(self):
        class Affine(layers.Layer):
            def build(self, shape):
                self.w = self.add_weight(shape=(shape[-1], 2), initializer="ones")
                self.b = self.add_weight(shape=(2,), initializer="zeros")

            def call(self, x):
                return 0.5 * (x @ self.w + self.b) - self.b / 2

        x = self.values(32, 3)
        model = keras.Sequential([keras.Input((3,)), Affine()])
        model.compile("sgd", "mse")
        history = model.fit(x, x[:, :2], batch_size=8, epochs=4, verbose=0)
        self.assertLess(history.history["loss"][-1], history.history["loss"][0])

    def test_optimizers(self):
        """Updates as one expression are those of Keras, which a class with an update_step of its own runs."""
        x, y = self.values(24, 3), self.values(24, 2)
        for name, options in (("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True}),
                              ("RMSprop", {}), ("RMSprop", {"momentum": 0.5}), ("Adam", {}), ("Adam", {"amsgrad": True}),
                              ("AdamW", {"weight_decay": 0.1}), ("Nadam", {})):
            known = getattr(keras.optimizers, name)
            own = type("Own", (known,), {"update_step": lambda self, *given: known.update_step(self, *given)})
            weights = []
            for kind in (known, own):
                keras.utils.set_random_seed(2)
                model = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(2)])
                model.compile(kind(0.05, **options), "mse")
                model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
                weights.append([weight.numpy() for weight in model.weights + model.optimizer.variables])
            with self.subTest(name, **options):
                self.close(weights[0], weights[1], tolerance=1e-5)

    def test_biases_of_convolutions(self):
        class Doubled(layers.Conv2D):
            def convolution_op(self, inputs, kernel):
                return 2 * super().convolution_op(inputs, kernel)

        for kind, shape, options in ((layers.Conv2D, (2, 6, 5, 3), {}), (Doubled, (2, 6, 5, 3), {}),
                                     (layers.Conv2D, (2, 3, 6, 5), {"data_format": "channels_first"}),
                                     (layers.Conv1D, (2, 6, 3), {"padding": "causal", "dilation_rate": 2}),
                                     (layers.Conv3D, (2, 4, 4, 4, 3), {"padding": "same", "groups": 3}),
                                     (layers.Conv2D, (2, 6, 5, 3), {"use_bias": False})):
            layer, x = kind(6, 2, bias_initializer="normal", **options), self.values(*shape)
            y = ops.convert_to_numpy(layer(x))
            if layer.use_bias:
                bias = layer.bias.numpy()
                layer.bias.assign(0 * bias)
                y0 = ops.convert_to_numpy(layer(x))
                axis = 1 if options.get("data_format") else -1
                self.close(y - y0, np.broadcast_to(np.expand_dims(bias, [i for i in range(y.ndim) if i != axis % y.ndim]), y.shape))
                self.assertGreater(np.abs(bias).max(), 1e-2)
            self.check_gradient(layer, x)

    def check_gradient(self, layer, x):
        """Compares the gradients of the sum of squared outputs with differences."""
        weights = layer.trainable_weights
        _, found = gradients_of(lambda: ops.sum(ops.square(layer(x))), weights)
        step = 1e-2
        for weight, gradient in zip(weights, found):
            value, direction = weight.numpy(), self.values(*weight.shape)
            ends = []
            for sign in (1, -1):
                weight.assign(value + sign * step * direction)
                ends.append(float(np.sum(np.square(ops.convert_to_numpy(layer(x)), dtype=float))))
            weight.assign(value)
            expected = (ends[0] - ends[1]) / (2 * step)
            self.assertLess(abs(float(np.sum(ops.convert_to_numpy(gradient) * direction)) - expected), 1e-2 * max(1, abs(expected)))

    def test_mixed_precision(self):
        keras.config.set_dtype_policy("mixed_float16")
        self.addCleanup(keras.config.set_dtype_policy, "float32")
        x = self.values(64, 3)
        model = keras.Sequential([keras.Input((3,)), layers.Dense(8, activation="relu"), layers.Dense(1, dtype="float32")])
        model.compile("adam", "mse")
        history = model.fit(x, x.sum(1), epochs=3, verbose=0)
        self.assertLess(history.history["loss"][-1], history.history["loss"][0])


PROGRAM = """
    import sys
    import keras
    print(keras.backend.backend(), sys.argv[1:], float(keras.ops.sum(keras.ops.ones(3))))
"""


class Programs(unittest.TestCase):
    def run_program(self, *arguments, text=PROGRAM, **environment):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            pathlib.Path(path).write_text(textwrap.dedent(text), encoding="utf-8")
            arguments = [path if one == "program" else one for one in arguments]
            names = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
            return subprocess.run([sys.executable, "-B", *arguments], env={**names, **environment}, capture_output=True, text=True,
                                  timeout=600, check=False)

    def test_launcher(self):
        found = self.run_program("-m", "keras_compute", "program", "--epochs")
        self.assertEqual(found.stdout, "compute ['--epochs'] 3.0\n", found.stderr)

    def test_start_of_python(self):
        site = f"import site, runpy, sys; site.addsitedir({str(HERE.parent)!r}); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])"
        found = self.run_program("-c", site, "program", KERAS_BACKEND="compute")
        self.assertEqual(found.stdout, "compute [] 3.0\n", found.stderr)

    def test_late_import(self):
        text = "import sys, types; sys.modules['keras.src.backend'] = types.ModuleType('backend'); import keras_compute"
        found = self.run_program("program", text=text)
        self.assertIn("import it before keras", found.stderr)


if __name__ == "__main__":
    unittest.main()
