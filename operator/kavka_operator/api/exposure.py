"""How clients outside of a Kubernetes reach a listener: a Service for each broker, and one to begin with."""

from typing import Annotated, Literal

from pydantic import Field

from kavka_operator.api.model import ListOf, Model
from kavka_operator.api.pods import ATOMIC, Texts

RANGES_MAX = 64


class Exposure(Model):
    """The Services of a listener."""

    type: Literal["NodePort", "LoadBalancer"] = Field(
        description="NodePort: a port of each machine. LoadBalancer: an address from whatever provides them."
    )
    annotations: Texts = Field(
        default_factory=dict,
        description="Annotations of the Services; in that of a broker {id} stands for its id, in the one to begin with"
        " for bootstrap.",
    )
    external_traffic_policy: Literal["Local", "Cluster"] = Field(
        default="Local",
        description="Local: brokers see the addresses of clients, and only the machine that a broker runs on leads to"
        " it. Cluster: every machine does, and brokers see addresses of machines.",
    )
    load_balancer_class: str | None = Field(
        default=None,
        max_length=253,
        description="Who provides the address, where there are several. It stays as it is.",
    )
    load_balancer_source_ranges: ListOf[Annotated[str, Field(max_length=64)]] = Field(
        default=(),
        max_length=RANGES_MAX,
        description="The addresses that may come, as 192.0.2.0/24.",
        json_schema_extra=ATOMIC,
    )
