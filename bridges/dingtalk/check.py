"""Looks at the DingTalk side of a bot: its secret, and whether it may connect in stream mode."""

from __future__ import annotations

from collections.abc import Callable

from bridges.checkup import refused, unanswered
from bridges.dingtalk.rest import Application, BadSecret, Refused, Rest
from bridges.http import CallFailed, Unanswered
from bridges.message import Clock, Noticed, Sign
from bridges.trusted import UntrustedHost


async def look(application: Application, topic: str, clock: Clock, hide: Callable[[str], None]) -> tuple[Noticed, ...]:
    """See :meth:`bridges.message.ChecksPlatform.check`; asks for a connection, whose ticket then runs out unused."""
    rest = Rest(application, clock, hide)
    try:
        await rest.token()
        place = await rest.endpoint(topic)
        hide(place.ticket)
        if not place.ticket:
            raise Unanswered("the answer is not what it should be")
        rest.hosts.check(place.endpoint)
    except BadSecret:
        return (Noticed(Sign.BAD_CREDENTIAL, "client_id, client_secret"),)
    except Refused as error:
        return (refused(error.status, error.code),)
    except CallFailed as error:
        return (unanswered(error),)
    except UntrustedHost:
        return (Noticed(Sign.UNREADABLE, UntrustedHost.__name__),)
    finally:
        await rest.close()
    return (Noticed(Sign.ACCEPTED, application.client_id),)
