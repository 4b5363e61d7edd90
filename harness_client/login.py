"""Which generation answers, and the login of those that want one (facts HARNESS 1 and 4.1)."""

from __future__ import annotations

from typing import Final

from harness_client.carrier import Carrier, check_status
from harness_client.errors import Malformed, Refused, Unauthorized, Unsupported, WrongHost
from harness_client.types import Generation

_SEE_OTHER: Final = 303


async def detect(carrier: Carrier) -> Generation:
    """Ask one question that only a legacy host answers, without a login.

    Raises WrongHost when the answer is that of no Harness, Forbidden behind the host's fence, and what the carrier
    raises when there is no answer.
    """
    try:
        await carrier.call("host.describe", {})
    except Unauthorized:
        return Generation.MODERN
    except (Malformed, Refused, Unsupported) as error:
        # 404 would be a modern host that knows our login, but nobody has logged in yet.
        raise WrongHost(f"what answers is no Harness of a known generation ({error})") from None
    return Generation.LEGACY


async def log_in(carrier: Carrier) -> None:
    """Exchange the token for the cookie that every call and socket of a modern host needs.

    The cookie is bound to the address as written and survives restarts of the host; the token does not.
    """
    token = carrier.address.token
    if token is None:
        raise Unauthorized("the host wants a token: use the whole address it prints at its start")
    status, _ = await carrier.index({"token": token})
    if status != _SEE_OTHER:
        check_status(status, "login")
    if not carrier.logged_in():
        raise WrongHost("login: the host gave no cookie")
