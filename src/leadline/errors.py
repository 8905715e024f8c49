"""Every error that Leadline raises on purpose.

LeadlineError
├── ConfigError            a setting is unknown, out of bounds, or names something that isn't there
│   └── MissingExtra       the setting needs a package that isn't installed; names the extra
├── StoreError             an index or the catalog could not do what was asked
│   ├── StoreDamaged       a persisted file can't be read; it is kept as it is, never overwritten
│   ├── ManifestMismatch   an index was built with another model, metric, width or analyser
│   ├── LeaseHeld          another process holds the data folder; names the owner
│   ├── StoreBusy          others write to the catalog, and did not end in time
│   ├── LeaseLost          this process's lease was taken over; nothing more is written
│   ├── TextMissing        an index answered, but the catalog has none of the texts
│   ├── CollectionUnknown  no collection of this name
│   └── InvalidFilter      a `where` filter that isn't in the portable form
├── IngestError            one file could not be taken in; the others go on
│   ├── UnsupportedFile    no loader for this kind of file
│   ├── UnreadableFile     damaged, encrypted, or not what its name says
│   ├── EmptyFile          no text in it
│   └── FileTooLarge       over a limit of bytes, pages, characters or seconds; names the limit
├── UploadRefused          an upload is none, or its files are badly named
│   └── UploadTooLarge     an upload is over a limit of bytes or files; names the limit
├── NotThere               nothing has this id, or not for this caller
│   ├── DocumentUnknown    no document
│   ├── FileNotKept        the document's bytes were never uploaded
│   ├── PassageUnknown     no passage
│   └── JobUnknown         no job
├── Forbidden              this caller may not do that
├── ModelError             a model could not be loaded or run
│   ├── ModelUnavailable   no such model, or it can't be reached; the run degrades
│   ├── RerankerRefused    the sign of the reranker's output can't be trusted
│   ├── ChatFailed         the LLM gave an error; `retryable` says whether another try may help
│   │   └── ContextTooLong  the prompt is longer than the LLM can take
│   └── ChatInterrupted    the LLM's stream broke before its finish reason
├── QuestionRefused        what was asked can't be a question
│   ├── QuestionEmpty      there is nothing in it
│   └── QuestionTooLong    it is longer than one is; names the limit
├── RecordError            what should be the record of an answer is something else, or damaged
├── DatasetError           a folder of judged questions can't be read, or its files don't fit together
├── WebUnavailable         the web search failed
│   ├── WebRateLimited     the search engine was asked too often
│   └── PageUnavailable    one page could not, or may not, be fetched; the others are
└── ThreadError            a conversation can't be used as asked
    ├── ThreadBusy         a run is already going on in this conversation
    ├── ThreadElsewhere    the conversation is about another collection
    └── ThreadUnknown      no conversation of this name
"""

import traceback

from leadline.records import Usage


class LeadlineError(RuntimeError):  # LangGraph's server passes on what the errors of Python's own say, no others
    """What went wrong and where; `hint` says what to do next (may be empty)."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class ConfigError(LeadlineError):
    """A setting is unknown, out of bounds, or names something that isn't there."""

    code = "config"


class MissingExtra(ConfigError):
    """A setting needs a package that isn't installed."""

    code = "missing_extra"


class StoreError(LeadlineError):
    """An index or the catalog could not do what was asked."""

    code = "store"


class StoreDamaged(StoreError):
    """A persisted file can't be read. It is kept as it is, never overwritten."""

    code = "store_damaged"


class ManifestMismatch(StoreError):
    """An index was built with another model, metric, width or analyser than the settings name."""

    code = "manifest_mismatch"


class LeaseHeld(StoreError):
    """Another process holds the data folder. The message names its owner."""

    code = "lease_held"


class StoreBusy(StoreError):
    """Others write to the catalog, and did not end in time."""

    code = "store_busy"


class LeaseLost(StoreError):
    """Another process took over the lease of this one; nothing more may be written."""

    code = "lease_lost"


class TextMissing(StoreError):
    """An index answered, but the catalog has none of the texts."""

    code = "text_missing"


class CollectionUnknown(StoreError):
    """There is no collection of this name."""

    code = "collection_unknown"


class InvalidFilter(StoreError):
    """A `where` filter that isn't in the portable form."""

    code = "invalid_filter"


class IngestError(LeadlineError):
    """One file could not be taken in; the others go on."""

    code = "ingest"


class UnsupportedFile(IngestError):
    """No loader for this kind of file."""

    code = "unsupported_file"


class UnreadableFile(IngestError):
    """A file is damaged, encrypted, or not what its name says."""

    code = "unreadable_file"


class EmptyFile(IngestError):
    """A file holds no text."""

    code = "empty_file"


class FileTooLarge(IngestError):
    """A file is over a limit of bytes, pages or characters. The message names the limit."""

    code = "file_too_large"


class UploadRefused(LeadlineError):
    """An upload is none, or its files are badly named. Nothing of it was kept."""

    code = "upload_refused"


class UploadTooLarge(UploadRefused):
    """An upload is over a limit of bytes or files. The message names the limit; nothing of it was kept."""

    code = "upload_too_large"


class NotThere(LeadlineError):
    """Nothing has this id, or not for this caller."""

    code = "not_found"


class DocumentUnknown(NotThere):
    """There is no document with this id."""

    code = "document_unknown"


class FileNotKept(NotThere):
    """The document is there, but its file was never uploaded."""

    code = "file_not_kept"


class PassageUnknown(NotThere):
    """There is no passage with this id."""

    code = "passage_unknown"


class JobUnknown(NotThere):
    """There is no job with this id."""

    code = "job_unknown"


class ModelError(LeadlineError):
    """A model could not be loaded or run."""

    code = "model"


class ModelUnavailable(ModelError):
    """No such model, or it can't be reached. A run goes on without it, degraded."""

    code = "model_unavailable"


class RerankerRefused(ModelError):
    """The sign of the reranker's output can't be trusted, so nothing may be decided by it."""

    code = "reranker_refused"


class ChatFailed(ModelError):
    """The LLM gave an error. `usage` is what the call spent all the same, as far as known."""

    code = "chat_failed"

    def __init__(self, message: str, *, hint: str = "", retryable: bool = False, usage: Usage | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.usage = usage


class ContextTooLong(ChatFailed):
    """The prompt is longer than the LLM can take; with less evidence it may fit."""

    code = "context_too_long"


class ChatInterrupted(ModelError):
    """The LLM's stream broke before its finish reason: what came is not an answer. `usage` is what it spent."""

    code = "chat_interrupted"

    def __init__(self, message: str, *, hint: str = "", usage: Usage | None = None) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage


class QuestionRefused(LeadlineError):
    """What was asked can't be a question."""

    code = "question"


class QuestionEmpty(QuestionRefused):
    """There is nothing in a question but white space. It is told in the same words everywhere."""

    def __init__(self) -> None:
        super().__init__("Nothing is asked: the question is empty.", hint="Write what you want to know.")


class QuestionTooLong(QuestionRefused):
    """A question has more characters than one may have."""


class RecordError(LeadlineError):
    """What should be the record of an answer is something else, or damaged."""

    code = "record"


class DatasetError(LeadlineError):
    """A folder of judged questions can't be read, or its files don't fit together."""

    code = "dataset"


class WebUnavailable(LeadlineError):
    """The web search failed, timed out or was rate-limited."""

    code = "web_unavailable"


class WebRateLimited(WebUnavailable):
    """The search engine was asked too often. `retry_after_s` is the pause it names, if it does."""

    code = "web_rate_limited"

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class PageUnavailable(WebUnavailable):
    """One page could not be fetched, or leads where nothing may be fetched from."""

    code = "page_unavailable"


class Forbidden(LeadlineError):
    """This caller may not do that."""

    code = "forbidden"


class ThreadError(LeadlineError):
    """A conversation can't be used as asked."""

    code = "thread"


class ThreadBusy(ThreadError):
    """A run is already going on in this conversation, in this process or another."""

    code = "thread_busy"


class ThreadElsewhere(ThreadError):
    """The conversation is about another collection than the one that is asked."""

    code = "thread_elsewhere"


class ThreadUnknown(ThreadError):
    """There is no conversation of this name."""

    code = "thread_unknown"


def raised_at(error: Exception) -> str:
    """For the log: the kind of an error and where it was raised. Its message can hold text of documents."""
    return f"{type(error).__name__}, raised at\n{''.join(traceback.format_tb(error.__traceback__))}"
