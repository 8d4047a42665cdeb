# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last answers of a module, in the folder of the ansible-playbook process."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import last_answer


def test_an_answer_that_cannot_be_kept_leaves_no_older_one(tmp_path, monkeypatch):
    """The disk is full. An old answer would say that less was done."""
    last_answer.keep(str(tmp_path), "key", {"step": "claim"})
    assert last_answer.last(str(tmp_path), "key") == {"step": "claim"}

    def full(path, _text):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    last_answer.keep(str(tmp_path), "key", {"step": "fence"})
    assert last_answer.last(str(tmp_path), "key") == {}
    assert list(tmp_path.iterdir()) == []
