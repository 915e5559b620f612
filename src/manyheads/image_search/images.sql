BEGIN;
CREATE TABLE vectors (
    row INTEGER PRIMARY KEY,        -- in vectors.f32, from 0
    sha256 TEXT NOT NULL UNIQUE     -- of the image's file; of its pixels where there is no file
);
CREATE TABLE images (
    name TEXT PRIMARY KEY,          -- the path, or "TABLE, row 12"; bytes if it is not UTF-8
    file TEXT,                      -- that holds it; NULL: none
    row INTEGER NOT NULL REFERENCES vectors (row),
    label TEXT,
    state TEXT                      -- of the file when it was read; NULL: read it again
);
CREATE INDEX images_of_row ON images (row);
CREATE INDEX images_of_file ON images (file);
COMMIT;
