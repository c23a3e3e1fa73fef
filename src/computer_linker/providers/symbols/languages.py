"""The node kinds of definitions in each language's grammar. Kinds unknown to a grammar are skipped."""

import re
from dataclasses import dataclass, field

VERSION = 4
"""Increment when the tables change, so that cached results of older tables are not used."""


@dataclass(frozen=True, slots=True)
class Language:
    """A grammar's module and function, its file endings, and its definitions by node kind."""

    name: str
    module: str
    suffixes: tuple[str, ...]
    definitions: dict[str, str]
    function: str = "language"
    containers: dict[str, str] = field(default_factory=dict)
    """Nodes that contain definitions without being one, with the field of their name."""
    patterns: tuple[tuple[str, str], ...] = ()
    """Further definitions as queries with the captures @definition and @name, and their kind."""


_SCRIPT = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
}
_SCRIPT_PATTERNS = (
    (
        "(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition",
        "function",
    ),
    ("(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition))", "variable"),
    (
        "(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition)))",
        "variable",
    ),
)
_TYPED = {
    **_SCRIPT,
    "abstract_class_declaration": "class",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "namespace",
    "method_signature": "method",
    "abstract_method_signature": "method",
    "function_signature": "function",
}
_C = {
    "function_definition": "function",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "type_definition": "type",
    "preproc_def": "macro",
    "preproc_function_def": "macro",
}

LANGUAGES = (
    Language(
        "python",
        "tree_sitter_python",
        (".py", ".pyi", ".pyw"),
        {"function_definition": "function", "class_definition": "class"},
        patterns=(
            ("(module (expression_statement (assignment left: (identifier) @name) @definition))", "variable"),
            ("(module (type_alias_statement left: (type (identifier) @name)) @definition)", "type"),
        ),
    ),
    Language(
        "javascript", "tree_sitter_javascript", (".js", ".jsx", ".mjs", ".cjs"), _SCRIPT, patterns=_SCRIPT_PATTERNS
    ),
    Language(
        "typescript",
        "tree_sitter_typescript",
        (".ts", ".mts", ".cts"),
        _TYPED,
        function="language_typescript",
        patterns=_SCRIPT_PATTERNS,
    ),
    Language("tsx", "tree_sitter_typescript", (".tsx",), _TYPED, function="language_tsx", patterns=_SCRIPT_PATTERNS),
    Language(
        "go",
        "tree_sitter_go",
        (".go",),
        {"function_declaration": "function", "method_declaration": "method", "type_spec": "type", "type_alias": "type"},
        patterns=(
            ("(source_file (const_declaration (const_spec name: (identifier) @name) @definition))", "constant"),
            ("(source_file (var_declaration (var_spec name: (identifier) @name) @definition))", "variable"),
        ),
    ),
    Language(
        "rust",
        "tree_sitter_rust",
        (".rs",),
        {
            "function_item": "function",
            "function_signature_item": "function",
            "struct_item": "struct",
            "union_item": "union",
            "enum_item": "enum",
            "trait_item": "trait",
            "mod_item": "module",
            "type_item": "type",
            "const_item": "constant",
            "static_item": "variable",
            "macro_definition": "macro",
        },
        containers={"impl_item": "type"},
    ),
    Language(
        "java",
        "tree_sitter_java",
        (".java",),
        {
            "class_declaration": "class",
            "interface_declaration": "interface",
            "enum_declaration": "enum",
            "record_declaration": "record",
            "annotation_type_declaration": "annotation",
            "method_declaration": "method",
            "constructor_declaration": "constructor",
        },
    ),
    Language("c", "tree_sitter_c", (".c", ".h"), _C),
    Language(
        "cpp",
        "tree_sitter_cpp",
        (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"),
        {**_C, "class_specifier": "class", "namespace_definition": "namespace", "alias_declaration": "type"},
    ),
    Language(
        "csharp",
        "tree_sitter_c_sharp",
        (".cs",),
        {
            "class_declaration": "class",
            "struct_declaration": "struct",
            "interface_declaration": "interface",
            "enum_declaration": "enum",
            "record_declaration": "record",
            "delegate_declaration": "delegate",
            "namespace_declaration": "namespace",
            "file_scoped_namespace_declaration": "namespace",
            "method_declaration": "method",
            "constructor_declaration": "constructor",
            "property_declaration": "property",
        },
    ),
    Language(
        "ruby",
        "tree_sitter_ruby",
        (".rb", ".rake"),
        {"method": "method", "singleton_method": "method", "class": "class", "module": "module"},
    ),
    Language(
        "php",
        "tree_sitter_php",
        (".php",),
        {
            "function_definition": "function",
            "class_declaration": "class",
            "interface_declaration": "interface",
            "trait_declaration": "trait",
            "enum_declaration": "enum",
            "method_declaration": "method",
        },
        function="language_php",
    ),
    Language("bash", "tree_sitter_bash", (".sh", ".bash"), {"function_definition": "function"}),
    Language(
        "kotlin",
        "tree_sitter_kotlin",
        (".kt", ".kts"),
        {
            "class_declaration": "class",
            "object_declaration": "object",
            "function_declaration": "function",
            "type_alias": "type",
        },
    ),
    Language(
        "swift",
        "tree_sitter_swift",
        (".swift",),
        {
            "class_declaration": "class",
            "protocol_declaration": "protocol",
            "function_declaration": "function",
            "protocol_function_declaration": "function",
            "init_declaration": "constructor",
            "typealias_declaration": "type",
        },
    ),
    Language(
        "scala",
        "tree_sitter_scala",
        (".scala", ".sc"),
        {
            "class_definition": "class",
            "object_definition": "object",
            "trait_definition": "trait",
            "enum_definition": "enum",
            "function_definition": "function",
            "function_declaration": "function",
            "type_definition": "type",
        },
    ),
    Language("lua", "tree_sitter_lua", (".lua",), {"function_declaration": "function"}),
)

BY_NAME = {language.name: language for language in LANGUAGES}
BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}
METHOD_HOLDERS = {"class", "struct", "trait", "interface", "protocol", "object", "enum", "record", "impl", "union"}


_CPLUSPLUS = re.compile(
    rb"^\s*(?:class\s+\w|namespace\b|template\s*<|using\s+\w|(?:public|private|protected)\s*:)|\bvirtual\s|[\w>]\s*:\s*public\s",
    re.MULTILINE,
)


def grammar_of(name: str, content: bytes) -> Language | None:
    """The language to parse a content as: a header may be C or C++, which only its content tells."""
    language = language_of(name)
    is_header = language is not None and language.name == "c" and name.endswith(".h")
    return BY_NAME["cpp"] if is_header and _CPLUSPLUS.search(content) else language


def language_of(path: str) -> Language | None:
    """The language of a file by its ending."""
    dot = path.rfind(".")
    return BY_SUFFIX.get(path[dot:].lower()) if dot > path.rfind("/") else None
