"""The life of a broker in the metadata: it registers (`registration_commands`), and lives (`heartbeat_commands`)."""

from kavka_broker.core.metadata.heartbeat_commands import Heartbeat, Standing, fence, heartbeat, leave
from kavka_broker.core.metadata.registration_commands import (
    Presence,
    Register,
    register,
    register_controller,
    unregister,
)

__all__ = [
    "Heartbeat",
    "Presence",
    "Register",
    "Standing",
    "fence",
    "heartbeat",
    "leave",
    "register",
    "register_controller",
    "unregister",
]
