# SPDX-License-Identifier: Apache-2.0
"""Exporting models to other formats, which this backend does not have."""


class ComputeExportArchive:
    def track(self, resource):
        raise NotImplementedError("models of the backend compute cannot be exported; use model.save")

    def add_endpoint(self, name, fn, input_signature=None, **options):
        raise NotImplementedError("models of the backend compute cannot be exported; use model.save")
