"""The text on a screen that Textual draws."""

from textual.app import App


def seen(app: App[None]) -> list[str]:
    """The lines on the screen."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]
