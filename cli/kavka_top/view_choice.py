"""The view that `kavka top` shows and the order of its rows. Each view keeps its order while another is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kavka_operator.live_views.model import History
from kavka_operator.live_views.tables import VIEWS, View
from kavka_operator.web_page.sheet import Order, Sheet


@dataclass(slots=True)
class ViewChoice:
    """One view of several, and an order for each. Before the first look there is no history, so no sheet either."""

    views: Mapping[str, View] = field(default_factory=lambda: VIEWS)
    name: str = ""
    history: History | None = None
    _orders: dict[str, Order] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.name or next(iter(self.views))

    @property
    def sheet(self) -> Sheet | None:
        """The sheet of the chosen view; None before the first look."""
        return self.views[self.name](self.history) if self.history is not None else None

    @property
    def order(self) -> Order:
        """The order of the chosen view: as it was asked for, otherwise that of its sheet."""
        if (order := self._orders.get(self.name)) is not None:
            return order
        sheet = self.sheet
        return Order(sheet.sort if sheet is not None else 0)

    def turn(self, steps: int) -> None:
        """Choose the next view, or the one before."""
        names = list(self.views)
        self.name = names[(names.index(self.name) + steps) % len(names)]

    def sort(self, steps: int) -> None:
        """Sort by the next column that sorts, or the one before."""
        if (sheet := self.sheet) is not None:
            columns = [at for at, column in enumerate(sheet.columns) if column.is_sorting]
            at = columns.index(self.order.column)
            self._orders[self.name] = replace(
                self.order, column=columns[(at + steps) % len(columns)], is_reversed=False
            )

    def reverse(self) -> None:
        """Turn the order around."""
        self._orders[self.name] = replace(self.order, is_reversed=not self.order.is_reversed)

    def filter(self, words: str) -> None:
        """Show only rows with these words; all for none."""
        self._orders[self.name] = replace(self.order, filter=words)
