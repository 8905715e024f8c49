"""A connection to a Pinecone index: found or made by name, or given by its host; and its errors as ours.

Knows the control plane, the key and what the client library raises; knows nothing of what an index holds. No message
holds the key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from leadline.errors import ConfigError, ManifestMismatch, MissingExtra, StoreError

if TYPE_CHECKING:
    from pinecone import AsyncIndex

Metric = Literal["cosine", "l2", "ip"]

METRICS = {"cosine": "cosine", "l2": "euclidean", "ip": "dotproduct"}
KEY_VARIABLE = "PINECONE_API_KEY"
LONGEST_START_S = 300  # until a new index can be used


@dataclass(frozen=True, slots=True)
class Account:
    """Whose index it is, and where a new one is made."""

    key: str = field(repr=False)
    index: str
    host: str | None
    metric: Metric
    cloud: str
    region: str
    timeout: float

    def mismatch(self, what: str) -> ManifestMismatch:
        """The index is not of the kind that was asked for."""
        return ManifestMismatch(
            f"The Pinecone index {self.index} {what}.", hint="Set the settings back, or use another index."
        )


def key_of(given: str | None) -> str:
    """The API key given, or that of the environment. Raises ConfigError."""
    key = given or os.environ.get(KEY_VARIABLE, "")
    if not key:
        raise ConfigError("Pinecone needs an API key.", hint=f"Set api_key, or {KEY_VARIABLE} in the environment.")
    return key


async def connect(account: Account) -> AsyncIndex | None:
    """A client of the index; None where there is none of this name. Raises MissingExtra, StoreError."""
    try:
        from pinecone import AsyncIndex, AsyncPinecone, NotFoundError
    except ImportError as error:
        raise MissingExtra(
            "The pinecone backend needs the package pinecone.", hint="pip install 'leadline[pinecone]'"
        ) from error
    host = account.host
    with errors_named(account):
        if host is None:
            async with AsyncPinecone(api_key=account.key, timeout=account.timeout) as control:
                try:
                    host = (await control.indexes.describe(account.index)).host
                except NotFoundError:
                    return None
        return AsyncIndex(host=host or "", api_key=account.key, timeout=account.timeout)


async def create(account: Account, dimension: int) -> AsyncIndex:
    """Makes the index, waits until it can be used, and gives a client of it."""
    from pinecone import AsyncIndex, AsyncPinecone

    where = {"deployment_type": "managed", "cloud": account.cloud, "region": account.region}
    with errors_named(account):
        async with AsyncPinecone(api_key=account.key, timeout=account.timeout) as control:
            made = await control.indexes.create(
                name=account.index,
                dimension=dimension,
                metric=METRICS[account.metric],
                deployment=where,
                timeout=LONGEST_START_S,
            )
        return AsyncIndex(host=made.host or "", api_key=account.key, timeout=account.timeout)


@contextmanager
def errors_named(account: Account) -> Iterator[None]:
    """Turns the client library's errors into StoreError; they themselves hold headers and bodies, and are left out."""
    from pinecone.errors import exceptions

    name = f"The Pinecone index {account.index}"
    try:
        yield
    except (exceptions.UnauthorizedError, exceptions.ForbiddenError) as error:
        raise StoreError(
            f"Pinecone doesn't accept the API key for the index {account.index} ({error.status_code}).",
            hint="Look whether the key is of this index's project, and what it may do.",
        ) from None
    except exceptions.RateLimitError:
        raise StoreError(
            f"{name} has had too many requests, or the month's are used up.",
            hint="Try again later, or look at the limits of the plan.",
        ) from None
    except exceptions.ServiceError as error:
        raise StoreError(f"{name} is failing ({error.status_code}).", hint="Try again later.") from None
    except exceptions.ApiError as error:
        raise StoreError(f"{name} refused a request ({error.status_code}): {_said(account, error.message)}.") from None
    except exceptions.PineconeTimeoutError:
        raise StoreError(
            f"{name} gave no answer in time.", hint="Look whether it is overloaded, or set a longer timeout."
        ) from None
    except exceptions.PineconeConnectionError:
        raise StoreError(f"{name} can't be reached.", hint="Look at the network, and at the host.") from None
    except exceptions.PineconeError as error:
        raise StoreError(f"{name}: {_said(account, str(error))}.") from None


def _said(account: Account, message: str) -> str:
    return message.replace(account.key, "…")[:300].rstrip(".")
