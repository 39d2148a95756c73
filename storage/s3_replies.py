"""What an S3 store's answer means for the one who asked.

s3fs turns the service's errors into Python's own, but not all alike: a lost condition is FileExistsError only when the
reply names the condition, which AWS does and SeaweedFS does not (there it is OSError EINVAL "pre-conditions"). The
service's own reply is kept as the cause, so that is read first.
"""

from __future__ import annotations

import enum
import errno
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "Reply", "read_reply"]


class Answer(enum.Enum):
    """The kinds of failure that callers tell apart."""

    EXISTS = enum.auto()
    MISSING = enum.auto()
    BEHIND_THE_END = enum.auto()
    NOT_NOW = enum.auto()  # the same request may succeed, and may have succeeded: its reply could be what was lost
    NOT_FOR_US = enum.auto()  # credentials, bucket, region, or a store without conditional writes
    REFUSED = enum.auto()
    UNKNOWN = enum.auto()  # not an answer of the store: an error of this program


@dataclass(frozen=True, slots=True)
class Reply:
    answer: Answer
    detail: str


_NOT_FOR_US = {
    "NoSuchBucket",
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "NotImplemented",
    "InvalidBucketName",
}
_CREDENTIALS = {"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"}
_CREDENTIALS_ARE = "they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from where AWS tools keep them"
_URL = re.compile(r"(https?://[^/?#\s\"']*)[^\s\"']*")

_NOT_NOW = {
    "BadDigest",  # damaged on the way
    "ConditionalRequestConflict",
    "IncompleteBody",
    "InternalError",
    "OperationAborted",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "XAmzContentSHA256Mismatch",
}


def read_reply(error: BaseException) -> Reply:
    """What this error, raised by a call of s3fs, says."""
    response = _service_response(error)
    if response is not None:
        return _read_response(response)
    if isinstance(error, FileExistsError):
        return Reply(Answer.EXISTS, str(error))
    if isinstance(error, OSError) and error.errno == errno.EINVAL and "pre-conditions" in str(error):
        return Reply(Answer.EXISTS, str(error))
    return _read_local_error(error)


def _service_response(error: BaseException | None) -> dict[str, Any] | None:
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict) and "Error" in response:
            return response
        error = error.__cause__
    return None


def _read_response(response: dict[str, Any]) -> Reply:
    code = str(response["Error"].get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    detail = f"{code}: {response['Error'].get('Message', '')} (HTTP {status})"
    if code in _CREDENTIALS or status in (401, 403):
        return Reply(Answer.NOT_FOR_US, f"the credentials were refused: {code} (HTTP {status}) — {_CREDENTIALS_ARE}")
    if code == "NoSuchBucket":
        return Reply(Answer.NOT_FOR_US, "there is no such bucket")
    if status == 412 or code == "PreconditionFailed":
        return Reply(Answer.EXISTS, detail)
    if code in _NOT_FOR_US or status in (301, 501):
        return Reply(Answer.NOT_FOR_US, detail)
    if code in _NOT_NOW or status in (408, 409, 425, 429) or status >= 500:
        return Reply(Answer.NOT_NOW, detail)
    if status == 404:
        return Reply(Answer.MISSING, detail)
    if status == 416:
        return Reply(Answer.BEHIND_THE_END, detail)
    return Reply(Answer.REFUSED, detail)


def _read_local_error(error: BaseException) -> Reply:
    """Errors that are not the service's: the connection's, or those of a client that is not set up."""
    import aiohttp
    import botocore.exceptions as client
    from s3fs.core import S3_RETRYABLE_ERRORS

    # Host and port are enough; what follows in a URL may be long, or not for everybody.
    detail = f"{type(error).__name__}: {_URL.sub(lambda url: url[1].rpartition('@')[2], str(error))}"
    passing = (
        *S3_RETRYABLE_ERRORS,
        client.ConnectionError,
        client.IncompleteReadError,
        client.MetadataRetrievalError,
        client.CredentialRetrievalError,
        aiohttp.ClientError,
        ConnectionError,
        TimeoutError,
    )
    if isinstance(error, client.NoCredentialsError | client.PartialCredentialsError):
        return Reply(Answer.NOT_FOR_US, f"there are no credentials — {_CREDENTIALS_ARE}")
    if isinstance(error, passing):
        return Reply(Answer.NOT_NOW, detail)
    if isinstance(error, client.BotoCoreError) or (isinstance(error, ValueError) and "endpoint" in str(error)):
        return Reply(Answer.NOT_FOR_US, detail)
    return Reply(Answer.UNKNOWN, detail)
