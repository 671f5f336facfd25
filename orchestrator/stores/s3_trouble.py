"""What went wrong between foxrun and an S3 server: said in one sentence, with the remedy, and whether to try again.

Only the codes and texts named here reach a message. A server's own error document may repeat the signed request,
session token included, so it is never shown. Codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from orchestrator.errors import InfrastructureError


class NoSuchKey(InfrastructureError):
    """Nothing is stored under the key."""


class ObjectChanged(InfrastructureError):
    """An object was replaced while it was read."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Whom foxrun talks to, and how, as far as it helps to understand an error; no credential."""

    endpoint: str
    bucket: str
    region: str
    virtual: bool  # bucket in the host name
    custom: bool  # any other server than AWS's own

    @property
    def host(self) -> str:
        """Host and port of the endpoint."""
        return urlsplit(self.endpoint).netloc.rpartition("@")[2]


@dataclass(frozen=True)
class Trouble:
    """The error to raise, and whether the same call may succeed a little later."""

    error: InfrastructureError
    transient: bool


_CREDENTIALS = "check the profile (AWS_PROFILE) or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; in a cluster the Secret"
# code -> what happened, what to do. {bucket}, {host}, {region} are filled in.
_FINAL: Mapping[str, tuple[str, str]] = {
    "SignatureDoesNotMatch": (
        "the server computes another signature: the secret key does not belong to the access key, or something between "
        "changes the request",
        _CREDENTIALS + "; also that a proxy before {host} keeps the Host header",
    ),
    "InvalidAccessKeyId": ("the server does not know the access key", _CREDENTIALS),
    "AccessDenied": (
        "access denied",
        "let the credentials list, read and write the bucket {bucket} (s3:ListBucket, s3:GetObject, s3:PutObject), or "
        "use others: AWS_PROFILE, AWS_ACCESS_KEY_ID",
    ),
    "ExpiredToken": ("the session token has expired", "get a new one: aws sso login, or renew AWS_SESSION_TOKEN"),
    "InvalidToken": ("the server does not accept the session token", "renew it, or unset AWS_SESSION_TOKEN"),
    "RequestTimeTooSkewed": ("this machine's clock is not the server's", "set the clock (chronyc makestep)"),
    "NoSuchBucket": ("there is no bucket {bucket}", "check s3_bucket and s3_endpoint, or make the bucket"),
    "PermanentRedirect": (
        "the bucket {bucket} is in another region than {region}",
        "set s3_region to the bucket's region{there}, and s3_endpoint to that region's or to nothing",
    ),
    "AuthorizationHeaderMalformed": (
        "the server expects another region than {region} in the signature",
        "set s3_region{there}",
    ),
    "SecondLevelDomainForbidden": (
        "the server wants the bucket in the host name",
        "set s3_addressing: virtual",
    ),
    "KeyTooLongError": ("the key is over 1,024 bytes long", "shorten the file's name"),
    "InvalidBucketName": ("{bucket!r} is no bucket name", "check s3_bucket"),
    "EntityTooLarge": ("the server does not store an object as large as this", "raise its limit"),
    "QuotaExceeded": ("the bucket {bucket} is full", "make room, or raise its quota"),
    "InvalidRequest": ("the server refuses the request", "see the server's log"),
}  # fmt: skip
_ALIASES: Mapping[str, str] = {
    "403": "AccessDenied", "AllAccessDisabled": "AccessDenied", "AccountProblem": "AccessDenied",
    "Forbidden": "AccessDenied", "XAdminUserNotFound": "InvalidAccessKeyId",
    "InvalidClientTokenId": "InvalidAccessKeyId",
    "UnrecognizedClientException": "InvalidAccessKeyId", "TokenRefreshRequired": "ExpiredToken",
    "ExpiredTokenException": "ExpiredToken", "301": "PermanentRedirect", "307": "PermanentRedirect",
    "IllegalLocationConstraintException": "PermanentRedirect", "TemporaryRedirect": "PermanentRedirect",
    "PathStyleDomainForbidden": "SecondLevelDomainForbidden", "VirtualHostDomainRequired": "SecondLevelDomainForbidden",
    "XMinioStorageFull": "QuotaExceeded", "InsufficientStorage": "QuotaExceeded", "507": "QuotaExceeded",
}  # fmt: skip
_AGAIN = frozenset(
    {
        "InternalError", "ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingException", "RequestTimeout",
        "RequestTimeoutException", "RequestLimitExceeded", "BandwidthLimitExceeded", "OperationAborted", "BadDigest",
        "IncompleteBody", "XMinioServerNotInitialized", "408", "429", "500", "502", "503", "504",
    }
)  # fmt: skip


def explain(error: BaseException, place: Place, what: str) -> Trouble:
    """What an exception of boto3, or of the transfer under it, means for ``what`` (such as ``s3://bucket/key``)."""
    from botocore import exceptions as b
    from botocore.parsers import ResponseParserError

    if isinstance(error, InfrastructureError):
        return Trouble(error, False)
    if isinstance(error, b.ClientError):
        return _answered(error.response, place, what)
    if isinstance(error, (b.NoCredentialsError, b.PartialCredentialsError, b.CredentialRetrievalError)):
        said = (
            "there are no credentials" if isinstance(error, b.NoCredentialsError) else "the credentials are incomplete"
        )
        return _final(what, said, _CREDENTIALS)
    if isinstance(error, b.ProfileNotFound):
        return _final(what, "AWS_PROFILE names a profile that ~/.aws does not have", "aws configure list-profiles")
    if isinstance(error, (b.TokenRetrievalError, b.SSOError, b.UnauthorizedSSOTokenError)):
        return _final(what, "the single sign-on session has ended", "aws sso login")
    if isinstance(error, b.NoRegionError):
        return _final(what, "no region is set", "set s3_region (or AWS_DEFAULT_REGION)")
    if isinstance(error, b.ParamValidationError):
        return _final(what, "boto3 refuses the name of the bucket or the key", f"check s3_bucket ({place.bucket!r})")
    if isinstance(error, ResponseParserError):
        said = f"what answers at {place.host} is no S3 server"
        return _final(what, said, f"check s3_endpoint ({place.endpoint}): scheme, host and port")
    if isinstance(error, b.SSLError):
        return _tls(error, place, what)
    if isinstance(error, (b.ConnectionError, b.HTTPClientError, b.IncompleteReadError, OSError)) or _is_transfer(error):
        return _connection(error, place, what)
    if isinstance(error, ValueError):
        return _final(what, f"{place.endpoint!r} is no address of a server", "set s3_endpoint to http(s)://host[:port]")
    said = f"boto3 gave up: {type(error).__name__}"
    return _final(what, said, "check s3_endpoint, s3_region and the profile; foxrun doctor tries a write and a read")


def code_of(error: BaseException) -> str:
    """The S3 error code of an answer, such as NoSuchKey or 404; empty for anything else."""
    response = getattr(error, "response", None)
    found = response.get("Error", {}).get("Code", "") if isinstance(response, Mapping) else ""
    return str(found)


def _answered(response: Mapping[str, Any], place: Place, what: str) -> Trouble:
    """An answer with an error code."""
    code = str(response.get("Error", {}).get("Code", ""))
    metadata = response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", 0)
    if code in ("NoSuchKey", "404"):
        return Trouble(NoSuchKey(f"{what}: nothing is stored there", remedy="check the address"), False)
    if code in ("PreconditionFailed", "412"):
        changed = ObjectChanged(f"{what}: it was replaced while it was read", remedy="run the command again")
        return Trouble(changed, False)
    if code == "400":  # a HEAD, or a server that explains nothing
        return _bad_request(place, what)
    known = _FINAL.get(_ALIASES.get(code, code))
    if known is not None:
        there = region_there(response)
        filled = [
            text.format(bucket=place.bucket, host=place.host, region=place.region or "none",
                        there=f" ({there})" if there else "")
            for text in known
        ]  # fmt: skip
        if _ALIASES.get(code, code) == "NoSuchBucket" and place.custom and place.virtual:
            filled[1] += "; or the server wants the bucket in the path: set s3_addressing: path"
        return _final(f"{what} ({code})", *filled)
    if code in _AGAIN or status >= 500 or status == 429:
        # Without a code of S3's own it may be any server: boto3 makes 500 of a page that is no answer of S3.
        stranger = "" if re.match("[A-Z]", code) else f"; if {place.host} is no S3 server, set s3_endpoint to one"
        error = InfrastructureError(
            f"{what}: {place.host} answers {code or status}: it is overloaded or out of order",
            remedy="try again later, or see the server's log" + stranger,
        )
        return Trouble(error, True)
    name = code if re.fullmatch(r"[A-Za-z0-9.]{1,60}", code) else str(status)
    return _final(what, f"{place.host} refuses: {name}", "see the server's log")


def region_there(response: Mapping[str, Any]) -> str:
    """The region that the server names in its answer; empty when it names none."""
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    error = response.get("Error", {})
    said = headers.get("x-amz-bucket-region") or error.get("Region") or ""
    if not said:
        match = re.search(r"expecting '([a-z0-9-]+)'", str(error.get("Message", "")))
        said = match.group(1) if match else ""
    return said if re.fullmatch(r"[a-z0-9-]{1,40}", str(said)) else ""


def _bad_request(place: Place, what: str) -> Trouble:
    said = f"{place.host} answers 400 (bad request) and does not say why"
    if place.endpoint.startswith("http://"):
        return _final(what, said, f"if it speaks TLS, set s3_endpoint to https://{place.host}")
    return _final(what, said, "check s3_endpoint and s3_region, and that the session token is of this account")


def _tls(error: BaseException, place: Place, what: str) -> Trouble:
    text = str(error)
    if any(
        sign in text for sign in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")
    ):
        return _final(what, f"{place.host} speaks no TLS", f"set s3_endpoint to http://{place.host}")
    if "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text:
        remedy = "let AWS_CA_BUNDLE name the file of the authority that signed it"
        return _final(what, f"the certificate of {place.host} is not trusted here", remedy)
    return _connection(error, place, what)


def _connection(error: BaseException, place: Place, what: str) -> Trouble:
    """No answer, or one that broke off."""
    from botocore import exceptions as b

    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    unresolved = next((cause for cause in causes if isinstance(cause, socket.gaierror)), None)
    if unresolved is not None or "NameResolutionError" in names:
        bucket_host = f"{place.bucket}.{place.host}"
        host = bucket_host if place.virtual else place.host
        remedy = f"check s3_endpoint ({place.endpoint})"
        if place.virtual and place.custom:
            remedy = f"set s3_addressing: path, or let DNS know *.{place.host}"
        passing = unresolved is not None and unresolved.errno == socket.EAI_AGAIN
        return Trouble(InfrastructureError(f"{what}: the name {host} cannot be resolved", remedy=remedy), passing)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        said, remedy = (
            f"{place.host} refuses the connection",
            f"start the server, or check s3_endpoint ({place.endpoint})",
        )
    elif isinstance(error, b.ConnectTimeoutError):
        said, remedy = f"{place.host} cannot be reached", "check s3_endpoint, the network, proxies and firewalls"
    elif isinstance(error, (b.ReadTimeoutError, TimeoutError)):
        said, remedy = f"{place.host} stopped sending", "the server or the network is overloaded: try again later"
    elif isinstance(error, b.EndpointConnectionError):
        said, remedy = f"{place.host} cannot be reached", "check s3_endpoint, the network, proxies and firewalls"
    elif isinstance(error, b.ProxyConnectionError):
        said, remedy = "the proxy cannot be reached", "check HTTPS_PROXY and NO_PROXY"
    else:
        said, remedy = f"the connection to {place.host} was cut", "check the network, or try again later"
    return Trouble(InfrastructureError(f"{what}: {said}", remedy=remedy), True)


def _is_transfer(error: BaseException) -> bool:
    """Trouble under botocore that reaches us as it is: urllib3 and http.client tell of a body that broke off."""
    return type(error).__module__.partition(".")[0] in ("urllib3", "http")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it was raised for; botocore keeps the original as a keyword."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = (getattr(error, "kwargs", None) or {}).get("error")
        reason = getattr(error, "reason", None)
        error = next(
            (e for e in (inner, reason, error.__cause__, error.__context__) if isinstance(e, BaseException)), None
        )


def _final(what: str, said: str, remedy: str) -> Trouble:
    return Trouble(InfrastructureError(f"{what}: {said}", remedy=remedy), False)
