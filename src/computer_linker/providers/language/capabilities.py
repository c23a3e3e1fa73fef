"""What this client of the Language Server Protocol supports, as its `initialize` request states it."""

from typing import Any

_SYMBOL_KINDS = {"valueSet": list(range(1, 27))}

CLIENT: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "experimental": {"serverStatusNotification": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        # Servers that may register for changes do not watch files themselves: they hear of them from us at once.
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"symbolKind": _SYMBOL_KINDS},
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        "applyEdit": True,
        "diagnostics": {"refreshSupport": False},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "definition": {"linkSupport": False},
        "declaration": {"linkSupport": False},
        "typeDefinition": {"linkSupport": False},
        "implementation": {"linkSupport": False},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, "symbolKind": _SYMBOL_KINDS},
        "rename": {"prepareSupport": True},
        "callHierarchy": {},
        "typeHierarchy": {},
        "formatting": {},
        "codeAction": {
            "codeActionLiteralSupport": {
                "codeActionKind": {"valueSet": ["", "quickfix", "refactor", "source", "source.organizeImports"]}
            },
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
        "diagnostic": {"relatedDocumentSupport": False},
    },
}
