# SPDX-License-Identifier: Apache-2.0
"""fit, evaluate and predict. In a training step the trainable variables have variables of compute.grad as values."""
from __future__ import annotations

import warnings

import numpy as np
from compute import grad
from keras.src import backend
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from . import random, recording
from .gradients import gradients_of
from .sparse import SparseTensor


class ComputeTrainer(base_trainer.Trainer):
    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None

    def _call_model(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _loss_and_outputs(self, x, y, sample_weight, training):
        y_pred = self._call_model(x, training)
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        count = next(one for one in tree.flatten(x) if one is not None).shape[0]
        self._loss_tracker.update_state(grad.constant(backend.convert_to_tensor(loss, sparse=False)), sample_weight=count)
        return loss, tree.map_structure(lambda one: grad.constant(one) if backend.is_tensor(one) else one, y_pred)

    def train_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        found = []

        def loss_of():
            loss, y_pred = self._loss_and_outputs(x, y, sample_weight, True)
            found.append(y_pred)
            return loss if self.optimizer is None else self.optimizer.scale_loss(loss)

        if self.trainable_weights:
            weights = self.trainable_weights[:]
            _, gradients = gradients_of(loss_of, weights)
            self.optimizer.apply(gradients, weights)
        else:
            warnings.warn("The model does not have any trainable weights.")
            loss_of()
        return self.compute_metrics(x, y, found[0], sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        _, y_pred = self._loss_and_outputs(x, y, sample_weight, False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._call_model(x, False)

    def _several_steps(self, step, join):
        """A function of several batches, which joins what the steps give."""
        if self.jit_compile and not self.run_eagerly:
            step = recording.Steps(step, self._assignable, random.number)

        def run(data):
            found = [step(one) for one in data]
            return found[0] if len(found) == 1 else join(found)

        return run

    def _assignable(self):
        """The variables that a step may assign."""
        return [*self.variables, *self.metrics_variables, *(self.optimizer.variables if self.optimizer else ())]

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = self._several_steps(self.train_step, lambda found: found[-1])

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._several_steps(self.test_step, lambda found: found[-1])

    def make_predict_function(self, force=False):
        def joined(found):
            return tree.map_structure(lambda *parts: backend.numpy.concatenate(parts), *found)

        if self.predict_function is None or force:
            self.predict_function = self._several_steps(self.predict_step, joined)

    def _batches_of(self, batch_size, steps, shuffle=False, **data):
        return _Iterator(batch_size=batch_size, steps_per_epoch=steps, shuffle=shuffle,
                         steps_per_execution=self.steps_per_execution, **data)

    def _callback_list(self, callbacks, verbose, epochs, iterator, **options):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        return callbacks_module.CallbackList(callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=epochs,
                                             steps=iterator.num_batches, model=self, **options)

    @traceback_utils.filter_traceback
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0,
            steps_per_epoch=None, validation_steps=None, validation_batch_size=None, validation_freq=1):
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn("Limiting epochs to %d" % most)
            epochs = most
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split)
        if validation_data is not None:
            val_x, val_y, val_weight = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
        iterator = self._batches_of(batch_size, steps_per_epoch, shuffle, x=x, y=y, sample_weight=sample_weight,
                                class_weight=class_weight)
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, epochs, iterator, add_history=True)
        self.stop_training = False
        training_logs = {}
        self.make_train_function()
        callbacks.on_train_begin()
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = {}
            for begin_step, end_step, data in iterator:
                callbacks.on_train_batch_begin(begin_step)
                logs = self.train_function(data)
                callbacks.on_train_batch_end(end_step, logs)
                if self.stop_training:
                    break
            epoch_logs = dict(self._get_metrics_result_or_logs(logs))
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                if self._eval_epoch_iterator is None:
                    self._eval_epoch_iterator = self._batches_of(validation_batch_size or batch_size, validation_steps, x=val_x,
                                                             y=val_y, sample_weight=val_weight)
                found = self.evaluate(x=val_x, y=val_y, sample_weight=val_weight,
                                      batch_size=validation_batch_size or batch_size, steps=validation_steps,
                                      callbacks=callbacks, return_dict=True, _use_cached_eval_dataset=True)
                epoch_logs.update({f"val_{name}": value for name, value in found.items()})
            callbacks.on_epoch_end(epoch, epoch_logs)
            training_logs = epoch_logs
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        del self._eval_epoch_iterator
        callbacks.on_train_end(logs=training_logs)
        return self.history

    @traceback_utils.filter_traceback
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False, **kwargs):
        self._assert_compile_called("evaluate")
        is_cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        iterator = self._eval_epoch_iterator if is_cached else self._batches_of(batch_size, steps, x=x, y=y,
                                                                            sample_weight=sample_weight)
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, 1, iterator)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs = {}
        self.reset_metrics()
        for begin_step, end_step, data in iterator:
            callbacks.on_test_batch_begin(begin_step)
            logs = self.test_function(data)
            callbacks.on_test_batch_end(end_step, logs)
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        iterator = self._batches_of(batch_size, steps, x=x)
        callbacks = self._callback_list(callbacks, verbose, 1, iterator)
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        outputs = None
        for begin_step, end_step, data in iterator:
            callbacks.on_predict_batch_begin(begin_step)
            found = self.predict_function(data)
            if outputs is None:
                outputs = tree.map_structure(lambda one: [one], found)
            else:
                tree.map_structure_up_to(found, lambda kept, one: kept.append(one), outputs, found)
            callbacks.on_predict_batch_end(end_step, {"outputs": found})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        outputs = tree.map_structure(backend.convert_to_numpy, outputs)
        return tree.map_structure_up_to(found, np.concatenate, outputs)

    def _logs_of(self, logs, return_dict):
        logs = pythonify_logs(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                                 f"Received: sample_weight={sample_weight}, class_weight={class_weight}")
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        data = _tensors((x, y, sample_weight))
        self._symbolic_build(data_batch=data)
        self.make_train_function()
        self.reset_metrics()
        return self._logs_of(self.train_function([data]), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        data = _tensors((x, y, sample_weight))
        self._symbolic_build(data_batch=data)
        self.make_test_function()
        self.reset_metrics()
        return self._logs_of(self.test_function([data]), return_dict)

    def predict_on_batch(self, x):
        self.make_predict_function()
        return tree.map_structure(backend.convert_to_numpy, self.predict_function([(_tensors(x),)]))


def _tensors(data):
    def tensor(x):
        if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
            return backend.convert_to_tensor(x)
        if data_adapter_utils.is_scipy_sparse(x):
            x = x.tocoo()
            return SparseTensor.of(np.stack([x.row, x.col], axis=-1), x.data, x.shape)
        if data_adapter_utils.is_tensorflow_sparse(x):
            return SparseTensor.of(np.asarray(x.indices), np.asarray(x.values), x.shape)
        if data_adapter_utils.is_jax_sparse(x):
            return SparseTensor.from_dense(np.asarray(x.todense()))
        return x

    return tree.map_structure(tensor, data)


class _Iterator(EpochIterator):
    def _get_iterator(self):
        return map(_tensors, self.data_adapter.get_numpy_iterator())
