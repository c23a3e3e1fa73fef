"""The one list of files that other programs execute, trust or log in with: what, why, and the documentation.

An entry is `kind | why | source`, then its paths in lower case; `+` is a space, a folder means everything in it:
  run        protected from writing, wherever the names follow each other
  tool       the same, and mounted read-only into every sandbox when it lies in the home
  home       protected from writing only in the home folder of the service's user: the names are ordinary elsewhere
  home-tool  both of the last two
  secret     closed to reading, writing and commands
  login      protected, and closed to reading by file operations; commands still read it, for their tools need it
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["run", "tool", "home", "home-tool", "secret", "login"]
Path = tuple[str, ...]

_TABLE = """
run | bash start-up files and what they source | bash(1) INVOCATION; dotfiles conventions
  .bash_completion .bash_functions .bash_prompt .bashrc.d .bash_it .oh-my-bash .config/bash
run | zsh start-up files, plugins and prompts | zsh(1) STARTUP/SHUTDOWN FILES; README of each plugin manager
  .oh-my-zsh .zsh .zshrc.d .zim .zimrc .zinit .zplug .zgen .zgenom .zpreztorc .zprezto .antigen .antigen.zsh
  .antidote .p10k.zsh .config/zsh .config/sheldon .local/share/zinit .local/share/zsh .local/share/sheldon
run | sourced by interactive shells | fzf install script; starship, direnv, atuin documentation
  .fzf .fzf.bash .fzf.zsh .fzf.fish .config/fzf .config/starship.toml .config/direnv .config/atuin
  .local/share/atuin/bin .atuin/bin .liquidprompt .local/share/bash-completion
run | start-up files of other shells | fish, nushell, elvish, xonsh, PowerShell (about_Profiles) documentation
  .config/fish .local/share/fish/vendor_conf.d .local/share/fish/vendor_completions.d
  .local/share/fish/vendor_functions.d .config/nushell .config/elvish .elvish .config/xonsh .xonshrc
  .config/powershell .mkshrc documents/powershell documents/windowspowershell
run | terminals and multiplexers start the commands these name | tmux(1), kitty, alacritty, wezterm documentation
  .config/tmux .tmux .config/zellij .byobu .config/kitty .config/alacritty .config/wezterm .wezterm.lua
  .config/ghostty .config/foot .config/terminator .config/konsolerc .local/share/konsole .hyper.js
run | started by the session or its window manager | freedesktop Autostart; systemd.unit(5); window managers' manuals
  .config/autostart .config/autostart-scripts .config/systemd .local/share/systemd .config/environment.d
  .config/plasma-workspace .config/lxsession .config/upstart .config/xfce4 .kde .kde4 .xresources .xdefaults
  .xmodmap .dmrc .fvwm .fluxbox .icewm .jwmrc .xbindkeysrc .sxhkdrc .config/sxhkd .config/i3 .i3 .config/sway
  .config/hypr .config/awesome .config/openbox .config/bspwm .config/qtile .config/river .config/niri .config/labwc
  .config/wayfire.ini .config/herbstluftwm .xmonad .config/xmonad .config/xmobar .config/leftwm .config/waybar
  .config/polybar .config/eww .config/rofi .config/dunst .config/swaync .config/swayidle
run | desktop entries, services and extensions that the session starts | freedesktop Desktop Entry; D-Bus services
  .config/mimeapps.list .config/user-dirs.dirs .config/electron-flags.conf .local/share/applications
  .local/share/dbus-1 .local/share/kservices5 .local/share/kio .local/share/nautilus .local/share/nemo
  .local/share/caja .local/share/gnome-shell .local/share/cinnamon .local/share/plasma .local/share/kwin
  .local/share/xsessions .local/share/thumbnailers .local/share/flatpak/exports .config/gtk-3.0 .config/gtk-4.0
  .config/pulse .config/pipewire .config/wireplumber .config/mpv .config/ranger .config/lf .config/yazi .config/vifm
  .config/nnn .config/mc .config/gdb .config/lldb
run | version control settings name programs to run | git-config(1), hgrc(5)
  .config/git .hgrc .config/hg .subversion .cvsrc .config/lazygit .config/gitui .config/tig .tigrc
run | editors load and run these | vim :help runtimepath; nvim :help standard-path; Emacs manual, Init File
  .vim .gvimrc .ideavimrc _vimrc _gvimrc .config/vim .config/nvim .config/lvim .local/share/nvim .local/share/lvim
  .local/share/bob .config/coc .spacevim.d .config/helix .config/kakoune .kakrc .config/micro .config/nano .nanorc
  .config/emacs .config/doom .doom.d .spacemacs .spacemacs.d .config/geany .config/kate .config/gedit
  .local/share/gedit .config/lite-xl .config/lapce-stable .selected_editor
run | editors load user settings, tasks and extensions | user folders by VS Code, Zed, JetBrains, Sublime docs
  .config/code .config/code+-+insiders .config/code+-+oss .config/vscodium .config/cursor .config/windsurf
  .config/windsurf+-+next .config/trae .config/kiro .config/positron .config/antigravity .vscode-server
  .vscode-server-insiders .vscode-oss .vscode-insiders .vscodium-server .vscode-remote .cursor-server
  .windsurf-server .trae-server .kiro-server .antigravity .antigravity-server .config/zed .local/share/zed
  .zed_server .config/jetbrains .local/share/jetbrains .config/sublime-text .config/sublime-text-2
  .config/sublime-text-3 .atom .config/pulsar .pulsar .theia .eclipse
run | settings, hooks and tool servers of agents | documentation of each agent: settings and MCP
  .config/opencode .local/share/opencode/bin .opencode/bin .config/goose .config/claude .local/share/claude
  .config/crush .crush .crush.json .config/mcp .config/github-copilot .copilot .amazonq .aws/amazonq .roo .roomodes
  .clinerules .cline .kiro .qwen .lmstudio .trae .augment .junie .factory .config/amp .amp .kilocode .iflow .grok
  .codeium .tabnine .aider .aider.model.settings.yml .aider.model.metadata.json .config/io.datasette.llm .ollama
  .devin
run | interpreters and package tools run these at start-up | Python, IPython, Jupyter, Julia, R documentation
  .pip .config/uv .config/pypoetry .config/pdm .config/hatch .condarc .config/conda .mambarc .ipython .jupyter
  .local/share/jupyter .config/jupyter .config/matplotlib .matplotlib .pythonrc .pythonrc.py .pdbrc .pdbrc.py
  .julia/config .config/r .renviron .octaverc .matlab .perldb .config/iex .iex.exs .erlang .ghci .ocamlinit .utoprc
  .config/utop .guile .sbclrc .clisprc .racketrc .lein .clojure .config/clojure .ammonite .jshellrc .config/pry
  .gemrc .bundle
run | build tools run what these name | Cargo, Maven, Gradle, sbt, Bazel, Nix documentation
  .cargo/config .cargo/config.toml .cargo/env .cargo/env.fish .cargo/env.nu .config/go/env .mavenrc
  .m2/extensions.xml .m2/toolchains.xml .gradle/init.gradle .gradle/init.gradle.kts .gradle/init.d .gradle/wrapper
  .sbt .sbtrc .ivy2/ivysettings.xml .ant .antrc .bazelrc .config/nix .nixpkgs .config/nixpkgs .config/home-manager
  .nix-defexpr .nix-channels .config/guix .conan/hooks .conan2/extensions .config/pnpm .config/yarn .config/deno
  .config/bun .bunfig.toml .config/mise .config/asdf .asdfrc .default-npm-packages .default-gems
  .default-python-packages .sdkman/etc
run | clients that run commands or plugins these name | manuals of psql, mutt, less, Docker, Terraform
  .psqlrc .sqliterc .mongorc.js .mongoshrc.js .mailrc .muttrc .mutt .config/mutt .config/neomutt .neomuttrc
  .config/aerc .forward .procmailrc .maildroprc .config/newsboat .newsboat .config/irssi .irssi .config/weechat
  .weechat .lesskey .config/lesskey .lessfilter .ripgreprc .config/ripgrep .ackrc .config/bat .config/delta .rhosts
  .shosts .k5login .k5users .config/containers .docker/cli-plugins .lima .colima .vagrant.d .config/libvirt
  .minikube/bin .config/k9s .ansible.cfg .chef .puppet .puppetlabs .pulumi/bin .pulumi/plugins .terraform.d/plugins
  .tflint.d .packer.d .serverlessrc
run | started or loaded by macOS and its tools | Apple: Creating Launch Daemons and Agents; tools' manuals
  library/launchagents library/launchdaemons library/preferences library/input+methods library/spotlight
  library/contextual+menu+items library/application+scripts library/colorpickers library/screen+savers
  library/application+support .hammerspoon .config/karabiner .yabairc .skhdrc .config/yabai .config/skhd
  .config/aerospace .aerospace.toml .phoenix.js .slate .amethyst.yml .finicky.js .mackup.cfg .config/iterm2 .iterm2
  .iterm2_shell_integration.bash .iterm2_shell_integration.zsh
run | started or loaded by Windows and its tools | Microsoft: Startup folder, about_Profiles; code.visualstudio.com
  start+menu/programs/startup appdata/roaming/code appdata/roaming/code+-+insiders appdata/roaming/vscodium
  appdata/roaming/cursor appdata/roaming/windsurf appdata/roaming/trae appdata/roaming/kiro appdata/roaming/zed
  appdata/roaming/jetbrains appdata/roaming/sublime+text appdata/roaming/npm appdata/roaming/nvm appdata/roaming/fnm
  appdata/roaming/pnpm appdata/roaming/python appdata/roaming/uv appdata/roaming/helix appdata/roaming/alacritty
  appdata/roaming/nushell appdata/roaming/autohotkey appdata/roaming/microsoft/word/startup
  appdata/roaming/microsoft/excel/xlstart appdata/roaming/microsoft/templates appdata/roaming/microsoft/addins
  appdata/roaming/microsoft/internet+explorer/quick+launch appdata/local/programs appdata/local/nvim
  appdata/local/microsoft/windowsapps appdata/local/microsoft/windows+terminal
  appdata/local/packages/microsoft.windowsterminal_8wekyb3d8bbwe appdata/local/pnpm appdata/local/volta
  appdata/local/fnm_multishells appdata/local/mise appdata/local/bun appdata/local/gitkraken
tool | version managers and installers put programs here that are on PATH | README of each
  .cargo/bin .rustup .local/bin .local/lib .local/pipx .local/share/pipx .local/share/uv/python
  .local/share/uv/tools .poetry .local/share/pypoetry .dotnet/tools .dotnet/sdk .bun/bin .bun/install/global
  .deno/bin .volta/bin .volta/tools .local/share/pnpm .local/share/mise .local/share/fnm .fnm .nvm .nodenv .pyenv
  .rbenv .rvm .asdf .jenv .goenv .plenv .phpenv .phpbrew .perlbrew .swiftenv .swiftly .tfenv .tgenv
  .sdkman/candidates .sdkman/bin .sdkman/src .sdkman/libexec .ghcup .elan .juliaup .julia/juliaup .proto/bin
  .proto/shims .proto/tools .pixi/bin .pixi/envs .nimble/bin .pub-cache/bin .krew .opam .cabal/bin .stack/programs
  .stack/snapshots .local/share/mamba .foundry/bin .linuxbrew .local/share/devbox
run | further folders of programs and plugins | README of each tool; XDG Base Directory variants
  .local/share/uv .volta .sdkman .gvm .luarocks .npm-global .npm-packages .yarn/bin .config/yarn/global
  .composer/vendor .config/composer/vendor .local/share/composer .micromamba .nix-profile .local/state/nix
  .guix-profile .local/share/helm/plugins .config/helm/plugins .helm/plugins .local/share/gh/extensions
  .local/share/nushell .platformio/penv .wasmer/bin .wasmtime/bin .fly/bin .flyctl/bin .turso .modular/bin .rye
  .rye/shims .local/share/rye .pkgx .local/share/aqua .local/share/aquaproj-aqua .local/share/cargo .spicetify
  .lmstudio/bin .basher .ghcup/env .local/share/ghcup .local/share/bun .local/share/deno .local/share/npm
  .local/share/go/bin .local/share/rustup .local/share/nvm .local/share/pyenv .local/share/rbenv .local/share/gem
  .local/share/emacs
home | programs and start-up files with plain names | Debian /etc/skel/.profile; documentation of n, conda, Flutter
  bin n/bin .yarn/releases .yarn/plugins miniconda3 anaconda3 miniforge3 mambaforge micromamba conda vimfiles scoop
  .asdf-data perl5 google-cloud-sdk flutter/bin development/flutter/bin android/sdk/platform-tools android/sdk/tools
  .dotfiles dotfiles .aliases .functions .exports .extra .path .bin .scripts .gem .conda .mix .ansible
  library/services library/scripts library/quicklook library/workflows library/keybindings library/python
home | logins that programs read in the home folder alone | netrc(5)
  .netrc
home-tool | `go install` puts programs here | go help install
  go/bin
secret | keys, password stores and keyrings | ssh(1), gpg(1), pass(1); manuals of the keyrings
  .ssh .gnupg .password-store .local/share/gopass .config/gopass .local/share/keyrings .gnome2/keyrings
  .local/share/kwalletd .local/share/kwallet .kde/share/apps/kwallet .kde4/share/apps/kwallet .config/keepassxc
  .cache/keepassxc .config/bitwarden .config/bitwarden+cli .config/1password .config/op .op .lpass .config/lpass
  .local/share/lpass .config/sops .age .config/age .pki .step .config/step .yubico library/keychains
secret | logins of agents | documentation of each agent: authentication
  .codex/auth.json .claude/.credentials.json .claude.json .claude.json.backup .gemini/oauth_creds.json
  .gemini/google_accounts.json .gemini/mcp-oauth-tokens.json .gemini/mcp-oauth-tokens-v2.json
  .gemini/gemini-credentials.json .gemini/.env .qwen/oauth_creds.json .iflow/oauth_creds.json
  .local/share/opencode/auth.json .local/share/opencode/mcp-auth.json .config/goose/secrets.yaml
  .config/github-copilot/apps.json .config/github-copilot/hosts.json .config/github-copilot/oauth.json
  .copilot/config.json .copilot/mcp-oauth-config .config/cursor/auth.json .cursor/auth.json
  .config/cursor/user/globalstorage .config/code/user/globalstorage .config/windsurf/user/globalstorage
  .factory/auth.json .factory/auth.encrypted .local/share/amp/secrets.json .local/share/crush/crush.json
  .local/share/crush/providers.json .augment/session.json .codeium/config.json .aws/sso .local/share/amazon-q
  .local/share/kiro-cli .mcp-auth .config/io.datasette.llm/keys.json .llm/keys.json .grok/user-settings.json
  .continue/config.json .continue/.env .ollama/id_ed25519
secret | logins of cloud and deployment tools | documentation of each command line: configuration and credentials
  .aws .azure .kube .config/gcloud .config/doctl .oci .linode-cli .config/linode-cli .config/hcloud .config/scw
  .vultr-cli.yaml .civo.json .bluemix .ibmcloud .aliyun .tccli .ovh.conf .fly/config.yml .config/fly .config/heroku
  .local/share/heroku .local/share/com.vercel.cli .config/com.vercel.cli .vercel/auth.json .config/netlify
  .netlify/config.json .wrangler/config .config/.wrangler .cloudflared .config/supabase .config/stripe
  .config/railway .render .config/render .config/configstore .config/firebase .config/ngrok .ngrok2
  .config/tailscale .config/argocd .argocd .terraform.d/credentials.tfrc.json .pulumi/credentials.json
  .config/helm/registry .config/helm/repositories.yaml .helm/repository .config/openstack .config/rclone
  .rclone.conf .config/restic .config/borg .borg .config/borgmatic .config/kopia .duplicacy .config/duplicati .tsh
  .config/teleport .config/databricks .databrickscfg .snowflake .snowsql .config/snowflake .dbt/profiles.yml
  .bigqueryrc .config/earthengine .config/planetscale .config/turso .edgerc .sentryclirc .saml2aws .config/saml2aws
  .awsvault .circleci/cli.yml .travis/config.yml .supabase/access-token .now/auth.json .railway/config.json
  .cf/config.json .config/pnpm/rc
secret | logins for registries and forges | documentation of each command line: authentication
  .docker/config.json .docker/.token_seed .config/containers/auth.json .local/share/containers/auth.json .config/hub
  .config/gh .config/glab-cli .config/glab .config/tea .jira.d .git/credentials .config/git/credentials
  .cargo/credentials .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml .gem/credentials
  .local/share/gem/credentials .hex/hex.config .composer/auth.json .config/composer/auth.json
  .config/pypoetry/auth.toml .local/share/uv/credentials .conan/.conan.db .conan2/.conan.db
  .pub-cache/credentials.json .config/dart/pub-credentials.json .jfrog .huggingface .cache/huggingface/token
  .cache/huggingface/stored_tokens .kaggle .config/kaggle .config/wandb .cometml.config .modal.toml .openai
  .nuget/plugins/credentials .ivy2/.credentials .sbt/.credentials .lein/credentials.clj.gpg .config/cachix
  .config/npm/npmrc .config/pnpm/auth.ini
secret | browser and mail profiles: cookies, passwords, sessions | Mozilla and Chromium: user profile folders; DPAPI
  .mozilla .librewolf .waterfox .zen .floorp .thunderbird .config/chromium .config/google-chrome
  .config/google-chrome-beta .config/google-chrome-unstable .config/bravesoftware .config/microsoft-edge
  .config/microsoft-edge-dev .config/vivaldi .config/opera .config/epiphany .local/share/epiphany
  .config/qutebrowser .local/share/qutebrowser .var/app/org.mozilla.firefox .var/app/com.google.chrome
  .var/app/org.chromium.chromium .var/app/com.brave.browser .var/app/org.mozilla.thunderbird library/safari
  library/application+support/google/chrome library/application+support/firefox
  library/application+support/bravesoftware library/application+support/microsoft+edge
  library/application+support/com.vercel.cli appdata/local/google/chrome/user+data
  appdata/local/microsoft/edge/user+data appdata/local/bravesoftware appdata/roaming/mozilla
  appdata/roaming/thunderbird appdata/roaming/opera+software appdata/roaming/microsoft/credentials
  appdata/roaming/microsoft/protect appdata/local/microsoft/credentials appdata/local/microsoft/vault
  appdata/roaming/gnupg appdata/roaming/gcloud appdata/roaming/github+cli snap/chromium/common
secret | mail, chat and remote desktop logins | manual of each program
  .mbsyncrc .config/isyncrc .config/mbsync .msmtprc .config/msmtp .fetchmailrc .offlineimaprc .config/offlineimap
  .getmail .config/getmail .config/himalaya .config/neverest .mutt/passwords .config/evolution
  .local/share/evolution .config/goa-1.0 .config/filezilla .config/remmina .local/share/remmina .config/freerdp
  .vnc/passwd .config/tigervnc/passwd .smbcredentials .config/slack .config/discord .config/signal .config/microsoft
  .local/share/telegramdesktop .purple
secret | database logins | libpq Password File; MySQL option files; mysql_config_editor
  .pgpass .pg_service.conf .my.cnf .mylogin.cnf .rediscli_auth .cassandra/credentials .config/dbeaver
  .local/share/dbeaverdata .sqlcl .config/pgcli .config/mycli .myclirc
secret | cookies and keys of the running session | Xsecurity(7); ICEauthority; Jupyter security
  .xauthority .iceauthority .esd_auth .config/pulse/cookie .local/share/jupyter/runtime
  .ipython/profile_default/security .config/kdeconnect .config/syncthing .local/state/syncthing
  .local/share/syncthing
secret | wallets | documentation of each wallet: data directory
  .bitcoin .ethereum .electrum .electron-cash .config/solana .config/monero-project .bitmonero .zcash .litecoin
  .dogecoin .config/ledger+live .near-credentials .starkli-wallets .brownie/accounts .foundry/keystores .config/sui
  .sui .aptos library/application+support/bitcoin
secret | histories hold typed passwords and tokens | manual of each shell
  .local/share/fish/fish_history .config/fish/fish_history .config/nushell/history.txt
  .config/nushell/history.sqlite3 .local/share/nushell/history.txt .local/share/atuin .local/state/bash
  .local/state/zsh .local/state/python_history .config/xonsh/history .local/share/xonsh
  .local/share/powershell/psreadline appdata/roaming/microsoft/windows/powershell/psreadline .zsh_sessions
  .bash_sessions
login | may hold addresses with a token, or headers | git-config(1); pip, Gradle, NuGet, aider configuration
  .git/config .git/config.worktree .gitconfig .config/git/config .pip/pip.conf .config/pip .bundle/config
  .gradle/gradle.properties .nuget/nuget/nuget.config .config/nuget .config/pip/pip.conf
  library/application+support/pip .aider.conf.yml
"""


@dataclass(frozen=True, slots=True)
class TrustedPlace:
    """One listed path, and why it is listed."""

    path: Path
    kind: str
    why: str
    source: str


@lru_cache(maxsize=1)
def listed() -> tuple[TrustedPlace, ...]:
    """Every path of the list, in its order."""
    found: list[TrustedPlace] = []
    kind = why = source = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            paths = (tuple(text.replace("+", " ").split("/")) for text in line.split())
            found += (TrustedPlace(path, kind, why, source) for path in paths)
        else:
            kind, why, source = line.split(" | ")
    return tuple(found)


def places(*kinds: Kind) -> tuple[Path, ...]:
    """The paths of these kinds, each once."""
    return tuple(dict.fromkeys(place.path for place in listed() if place.kind in kinds))
