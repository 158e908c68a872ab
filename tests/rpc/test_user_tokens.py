"""Users by their tokens: whom a server lets in, over which network, and what the file tells."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import threading

import pytest

from engine.cli.main import main
from engine.config.loader import configuration_from_texts
from engine.errors import ConfigurationError
from engine.rpc.credentials import AUTHORIZATION
from engine.rpc.http_messages import Access, Route, json_response
from engine.rpc.principal import READER, SECRET_HOLDER, Principal, Role, current_principal
from engine.rpc.user_tokens import UserTokens, add_user, list_users, own_token, remove_user
from tests.rpc.served import served


@pytest.fixture
def path(tmp_path):
    return tmp_path / "users.tokens"


def asked(running, method, target, token=None, signed=False):
    headers = {} if token is None else {AUTHORIZATION: f"Bearer {token}"}
    return running.ask(method, target, b"", headers, signed=signed)[0]


def test_the_file_has_hashes_and_a_user_another_token_each_time(path):
    first = add_user(path, "ada", Role.SUBMIT)
    add_user(path, "bob", Role.READ)
    second = add_user(path, "ada", Role.ADMIN)
    assert len({first, second}) == 2 and len(second) >= 43
    text = path.read_text()
    assert first not in text and second not in text
    assert f"ada admin {hashlib.sha256(second.encode()).hexdigest()}" in text
    users = UserTokens(path)
    assert users.find(f"Bearer {second}") == Principal("ada", Role.ADMIN)
    assert users.find(f"Bearer {first}") is None
    assert users.find("Basic " + base64.b64encode(b"anyone:" + second.encode()).decode()) is not None
    assert all(users.find(header) is None for header in (None, "", "Bearer ", "Drey-HMAC-SHA256 1:2:3:4"))
    assert second not in repr(users)
    assert remove_user(path, "ada") and not remove_user(path, "ada")
    assert [user.name for user in list_users(path)] == ["bob"]
    assert users.find(f"Bearer {second}") is None


def test_users_that_are_added_at_once_are_all_there(path):
    threads = [threading.Thread(target=add_user, args=(path, f"user-{n}", Role.READ)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list_users(path)) == 8
    assert [each.name for each in path.parent.iterdir()] == ["users.tokens"], "nothing is left beside it"


@pytest.mark.parametrize(
    "line",
    ["ada", "ada admin", f"ada owner {'0' * 64}", f"ada Admin {'0' * 64}", f"/b read {'0' * 64}", "ada read 0"],
)
def test_a_line_that_is_not_understood_is_named_and_lets_nobody_in(path, line):
    token = add_user(path, "bob", Role.ADMIN)
    users = UserTokens(path)
    assert users.find(f"Bearer {token}") is not None
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ConfigurationError, match="line 2 of"):
        list_users(path)
    assert users.find(f"Bearer {token}") is None


def test_a_file_that_others_may_read_and_a_name_with_a_space_are_refused(path):
    with pytest.raises(ConfigurationError, match="no name of a user"):
        add_user(path, "ada admin", Role.READ)
    add_user(path, "ada", Role.READ)
    path.chmod(0o640)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        list_users(path)


def test_a_file_of_root_may_be_read_by_its_group_as_orchestrators_mount_it(path, monkeypatch):
    add_user(path, "ada", Role.READ)
    path.chmod(0o440)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        list_users(path)
    known = os.fstat

    def of_root(descriptor):
        status = list(known(descriptor))[:10]
        status[stat.ST_UID] = 0
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", of_root)
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    assert [user.name for user in list_users(path)] == ["ada"]


@pytest.mark.parametrize(("bind_host", "status"), [("127.0.0.1", 200), ("0.0.0.0", 403)])
def test_a_token_that_may_change_something_does_not_cross_an_open_network(path, bind_host, status):
    admin, reader = add_user(path, "ada", Role.ADMIN), add_user(path, "bob", Role.READ)
    seen = []

    async def note(request):
        seen.append((request.principal, current_principal.get()))
        return json_response({})

    change = Route("POST", "/change", note, Access.SECRET, role=Role.ADMIN)
    with served(bind_host=bind_host, routes=[change]) as running:
        running.server.users = UserTokens(path)
        assert asked(running, "POST", "/change", admin) == status
        assert asked(running, "POST", "/change", reader) == 403
        assert asked(running, "POST", "/change", "x" * 43) == 401
        assert asked(running, "POST", "/change", signed=True) == 200
        assert asked(running, "POST", "/echo", admin) == 403, "a route without a role is no user's"
    ada = Principal("ada", Role.ADMIN)
    assert seen == ([(ada, ada)] if status == 200 else []) + [(SECRET_HOLDER, SECRET_HOLDER)]
    assert current_principal.get() is READER


def test_the_commands_add_list_and_remove(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.yaml").write_text("")
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path))
    assert main(["token", "add", "ada", "--role", "submit"]) == 0
    said = capsys.readouterr()
    token = said.out.strip()
    assert "shown once" in said.err and UserTokens(tmp_path / "users.tokens").find(f"Bearer {token}").name == "ada"
    (tmp_path / "ada.token").write_text(token + "\n")
    (tmp_path / "ada.token").chmod(0o600)
    configuration = configuration_from_texts({"security.token-file": "ada.token"})
    assert own_token(configuration) == token
    (tmp_path / "ada.token").write_text("")
    with pytest.raises(ConfigurationError, match=r"has 0 bytes.*: write the token into it.*flink-run token add"):
        own_token(configuration)
    assert main(["token", "list"]) == 0
    assert capsys.readouterr().out.split() == ["ada", "submit"]
    assert main(["token", "remove", "bob"]) == 1
    assert main(["token", "remove", "ada"]) == 0
    assert list_users(tmp_path / "users.tokens") == ()
