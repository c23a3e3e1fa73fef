CREATE TABLE heads (machine TEXT PRIMARY KEY, number INTEGER NOT NULL, seal BLOB NOT NULL);
CREATE TABLE frames (
    machine TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, frame BLOB NOT NULL,
    PRIMARY KEY (machine, first, last)
);
CREATE TABLE problems (machine TEXT NOT NULL, at REAL NOT NULL, number INTEGER NOT NULL, problem TEXT NOT NULL);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    machine TEXT NOT NULL, n INTEGER NOT NULL,
    id TEXT NOT NULL, at TEXT NOT NULL, scope TEXT NOT NULL, op TEXT NOT NULL,
    ok INTEGER, code TEXT, client TEXT, session TEXT, connection TEXT, principal TEXT,
    opening BLOB NOT NULL, closing BLOB, text TEXT NOT NULL,
    UNIQUE (machine, n)
);
CREATE INDEX by_time ON events (at, number);
CREATE INDEX by_id ON events (machine, id);
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = 'events', content_rowid = 'number', detail = 'none', columnsize = 0
)
