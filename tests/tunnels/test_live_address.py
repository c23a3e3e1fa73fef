"""While a tunnel is open its address is the public one; the file keeps what the owner wrote."""

from pathlib import Path

from computer_linker.config.live import LiveConfig
from support.service import TOKEN, write_config


def live(tmp_path: Path, **fields: str) -> LiveConfig:
    write_config(tmp_path / "home", tmp_path / "root", token=TOKEN, **fields)
    return LiveConfig(tmp_path / "home", fresh_for_s=0)


def test_the_tunnels_address_goes_before_the_files_and_only_while_it_is_open(tmp_path: Path) -> None:
    config = live(tmp_path, publicBaseUrl="https://proxy.example.com")
    config.expose("https://x.trycloudflare.com")
    assert config.current().public_base_url == "https://x.trycloudflare.com"
    config.expose(None)
    assert config.current().public_base_url == "https://proxy.example.com"


def test_it_is_one_object_until_something_changes(tmp_path: Path) -> None:
    """Others keep what they worked out for a config by its identity."""
    config = live(tmp_path)
    config.expose("https://x.trycloudflare.com")
    first = config.current()
    assert config.current() is first
    write_config(tmp_path / "home", tmp_path / "root", token=TOKEN, machineName="another")
    assert config.current().machine_name == "another"
    assert config.current().public_base_url == "https://x.trycloudflare.com"
    config.expose("https://y.trycloudflare.com")
    assert config.current().public_base_url == "https://y.trycloudflare.com"


def test_without_an_owner_token_no_address_is_public(tmp_path: Path) -> None:
    config = live(tmp_path)
    config.expose("https://x.trycloudflare.com")
    write_config(tmp_path / "home", tmp_path / "root", token=None)
    assert config.current().public_base_url is None
