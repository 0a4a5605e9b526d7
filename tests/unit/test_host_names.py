"""Which host a name or an address means, with and without hosts given."""

import socket

import pytest

from supervisor.adapters.host_names import HostNames
from supervisor.wire import canonical_host


def _given(*hosts: str, **addresses: str) -> HostNames:
    return HostNames(hosts, addresses)


def _found(*names: str) -> list[str]:
    hosts = HostNames((), {})
    for name in names:
        hosts.resolve(name)
    return list(hosts.found)


@pytest.mark.parametrize(
    "name", ["gn1", "GN1", "gn1.cluster.example.org", "gn1-hsn0", "gn1-ib0", "gn1.hostmgmt2209.cm"]
)
def test_every_form_of_a_hosts_name_means_it(name: str) -> None:
    assert "gn1" == _given("gn1.cluster.example.org", "gn2").resolve(name)


@pytest.mark.parametrize("name", ["gn10", "gn", "gn3", "", "10.0.0.1", "rank1"])
def test_other_names_mean_nobody(name: str) -> None:
    """gn1 is a prefix of gn10."""
    assert _given("gn1", "gn2").resolve(name) is None


def test_an_address_means_the_host_that_the_user_says() -> None:
    names = HostNames(("gn1", "gn2"), {"10.0.0.2": "gn2.cluster", "10.0.0.9": "elsewhere"})

    assert "gn2" == names.resolve("10.0.0.2")
    assert names.resolve("10.0.0.9") is None


def test_a_host_may_be_given_by_its_address() -> None:
    names = _given("10.0.0.1", "fd00::2")

    assert ["10.0.0.1", "fd00::2"] == [names.resolve("10.0.0.1"), names.resolve("fd00::2")]


def test_an_address_of_this_machine_is_looked_up() -> None:
    """Under the name that this machine's resolver has for it."""
    name = _name_of_this_machine()

    assert canonical_host(name) == HostNames((name,), {}).resolve("127.0.0.1")


def _name_of_this_machine() -> str:
    try:
        return socket.gethostbyaddr("127.0.0.1")[0]
    except OSError:
        pytest.skip("the resolver knows no name for 127.0.0.1")


def test_without_hosts_given_no_address_is_looked_up() -> None:
    assert HostNames((), {}).resolve("127.0.0.1") is None


def test_without_hosts_given_names_that_look_like_hosts_are_remembered_once() -> None:
    assert ["gn12", "x1001c0s1b0n0", "nid001234"] == _found(
        "gn12", "x1001c0s1b0n0-hsn0", "gn12.cluster", "nid001234"
    )


@pytest.mark.parametrize(
    "name", ["rank3", "gpu0", "mlx5_0", "cuda:1", "step12", "eth0", "python", "v2", "3gn", "gn 1"]
)
def test_without_hosts_given_other_words_are_no_hosts(name: str) -> None:
    assert [] == _found(name)


def test_hosts_that_are_given_are_not_found() -> None:
    names = _given("gn1")
    names.resolve("gn1")

    assert {} == names.found
