"""What commands that delete do about the stored conversations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.cli.display import say
from leadline.errors import LeadlineError

if TYPE_CHECKING:
    from leadline.config import Settings
    from leadline.knowledge import Library

THREADS = "threads.db"  # known here too, since the module that knows it takes seconds to import


@dataclass(frozen=True, slots=True)
class Redacted:
    """How many conversations had answers made from what was deleted, and why they can't all be rid of them yet."""

    conversations: int = 0
    owed: str = ""

    def show(self) -> None:
        """Says it on standard error, where there is anything to say."""
        if self.conversations:
            say(f"Answers made from what is gone were removed from {self.conversations} conversations.", stderr=True)
        if self.owed:
            say(f"The conversations could not follow yet: {self.owed}", style="yellow", stderr=True)


async def redact(settings: "Settings", library: "Library") -> Redacted:
    """Takes the answers made from deleted documents out of the conversations, wherever the settings keep them."""
    if settings.threads_url is None and not (settings.data_dir / THREADS).exists():
        return Redacted()
    from leadline.graph.redaction import forget_deleted

    try:
        return Redacted(await forget_deleted(settings, library))
    except LeadlineError as error:  # the documents are deleted all the same
        return Redacted(owed=f"{error.message} {error.hint}".strip())
