# SPDX-License-Identifier: Apache-2.0
"""Exporting models to other formats, which this backend does not have."""


class ComputeExportArchive:
    def track(self, resource):
        raise NotImplementedError("`export_saved_model` only currently supports the tensorflow, jax and torch backends. "
                                  "Models of the backend compute are saved by `model.save`.")

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        self.track(fn)

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        self.track(resource)

    def write_out(self, filepath, options=None, verbose=True):
        self.track(None)
