# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of the Kubernetes API as plain data: dictionaries with camelCase keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


def only_as_seen(seen: Object) -> Object:
    """The options of a deletion that deletes an object only if nobody has written it, or created it again, since."""
    return {"preconditions": {key: seen["metadata"][key] for key in ("uid", "resourceVersion")}}


@dataclass(frozen=True)
class ObjectChange:
    """An object before and after a write. Both are the same object if nothing was written."""

    before: Object
    after: Object

    @property
    def changed(self) -> bool:
        return self.before is not self.after
