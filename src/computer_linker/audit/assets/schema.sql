CREATE TABLE mark (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    segment INTEGER NOT NULL, offset INTEGER NOT NULL, number INTEGER NOT NULL, seal BLOB NOT NULL
);
CREATE TABLE kept (id INTEGER PRIMARY KEY);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL, at TEXT NOT NULL, scope TEXT NOT NULL, op TEXT NOT NULL,
    ok INTEGER, code TEXT, client TEXT, session TEXT, connection TEXT, principal TEXT,
    segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, previous BLOB NOT NULL,
    end_number INTEGER, end_segment INTEGER, end_offset INTEGER, end_length INTEGER, end_previous BLOB,
    text TEXT NOT NULL,
    approved TEXT, approved_by TEXT,
    handle TEXT, request TEXT
);
CREATE INDEX by_scope ON events (scope, number);
CREATE INDEX by_principal ON events (principal, number);
CREATE INDEX by_handle ON events (handle, number) WHERE handle IS NOT NULL;
CREATE INDEX ended ON events (end_number) WHERE end_number IS NOT NULL;
CREATE INDEX unfinished ON events (id) WHERE ok IS NULL;
CREATE INDEX failed ON events (number) WHERE ok = 0;
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = 'events', content_rowid = 'number', detail = 'none', columnsize = 0
);
