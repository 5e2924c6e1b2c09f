package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"perch/gateway/admin"
	"perch/gateway/door"
	"perch/store"
)

// backupTries is how often it is tried to have the file of every image that the
// database knows, where images come and go meanwhile.
const backupTries = 3

// newPack makes a backup of a data directory, of which database copies the
// database. An image's file is there before its record and goes after it, so
// the folder is looked through before and after the database is copied.
func newPack(ctx context.Context, data string, database func(io.Writer) error, log *slog.Logger) (*pack, error) {
	for try := 1; ; try++ {
		files := map[string]*os.File{}
		p, lost, err := collect(ctx, data, files, database, log)
		if err == nil && len(lost) > 0 && try < backupTries {
			err = errAgain
		}
		switch {
		case err == nil:
			if len(lost) > 0 {
				log.Warn("images of the catalogue have no file, and are not in the backup", "sha256", lost)
			}
			return p, nil
		case !errors.Is(err, errAgain):
			closeAll(files)
			return nil, err
		}
		closeAll(files)
	}
}

var errAgain = errors.New("an image came or went")

// collect opens into files what belongs into a backup. lost are the images that
// the database knows and whose files are not there.
func collect(ctx context.Context, data string, files map[string]*os.File, database func(io.Writer) error, log *slog.Logger) (p *pack, lost []string, err error) {
	if err := openFirmwareFiles(data, files); err != nil {
		return nil, nil, err
	}
	spool, err := nameless(data)
	if err != nil {
		return nil, nil, diskFault(fmt.Errorf("write a copy of the database: %w", err))
	}
	files[databaseName] = spool
	if err := database(spool); err != nil {
		return nil, nil, diskFault(err)
	}
	if err := openFirmwareFiles(data, files); err != nil {
		return nil, nil, err
	}
	m := manifest{Format: archiveFormat, Perch: version, Created: time.Now().UTC().Truncate(time.Second)}
	found, err := store.Check(spool, store.Options{Migrations: migrations()}, func(table, key string, value []byte) error {
		switch {
		case table == "appliance" && key == "id":
			return json.Unmarshal(value, &m.Appliance)
		case table == "firmware" && files[imagePath(key)] == nil:
			lost = append(lost, key)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("check the copy of the database: %w", err)
	}
	m.Schema = found.Schema
	p, err = inventory(ctx, m, files, log)
	return p, lost, err
}

func imagePath(sha string) string { return firmwareName + "/" + sha + ".bin" }

// inventory adds the files to the manifest, the database first.
func inventory(ctx context.Context, m manifest, files map[string]*os.File, log *slog.Logger) (*pack, error) {
	p := &pack{manifest: m}
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(-cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		hash := sha256.New()
		n, err := io.Copy(hash, stoppable{ctx, io.NewSectionReader(files[name], 0, 1<<62)})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		f := archived{Name: name, Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))}
		if err := f.check(); err != nil {
			log.Warn("a file is not in the backup, for it is damaged; remove it, and publish it again", "file", name, "err", err)
			_ = files[name].Close() // it was only read
			continue
		}
		p.manifest.Files, p.files = append(p.manifest.Files, f), append(p.files, files[name])
	}
	if err := p.manifest.check(); err != nil {
		return nil, err
	}
	var err error
	p.text, err = json.MarshalIndent(p.manifest, "", "  ")
	return p, err
}

func rank(name string) int {
	if name == databaseName {
		return 1
	}
	return 0
}

// openFirmwareFiles opens the images and the asset files that are not open yet.
// Uploads under way are no files yet.
func openFirmwareFiles(data string, files map[string]*os.File) error {
	for _, folder := range []string{firmwareName, assetsName} {
		list, err := os.ReadDir(filepath.Join(data, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the folder for firmware: %w", err)
		}
		for _, entry := range list {
			name := folder + "/" + entry.Name()
			if files[name] != nil || !entry.Type().IsRegular() || !imageFile.MatchString(name) && !assetFile.MatchString(name) {
				continue
			}
			f, err := os.Open(filepath.Join(data, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has just been removed
			}
			if err != nil {
				return fmt.Errorf("read the folder for firmware: %w", err)
			}
			files[name] = f
		}
	}
	return nil
}

// nameless is a file in the data directory that is gone when it is closed. Where
// that cannot be written, a card that is failing may still be saved.
func nameless(data string) (*os.File, error) {
	f, err := os.CreateTemp(data, ".backup-*")
	if err != nil {
		f, err = os.CreateTemp("", ".perch-backup-*")
	}
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}

func closeAll(files map[string]*os.File) {
	for _, f := range files {
		_ = f.Close() // it was only read
	}
}

// archives makes backups of the running appliance and takes those that are to
// be restored, one at a time.
type archives struct {
	data    string
	db      *store.DB
	restart func()
	log     *slog.Logger
	busy    chan struct{} // holds a token while one is made or taken
}

func newArchives(data string, db *store.DB, restart func(), log *slog.Logger) *archives {
	return &archives{data: data, db: db, restart: restart, log: log, busy: make(chan struct{}, 1)}
}

func (a *archives) begin() error {
	select {
	case a.busy <- struct{}{}:
		return nil
	default:
		return &door.Fault{Word: "busy", HTTP: http.StatusConflict, Sentence: "another backup or restore is under way; try again when it has ended"}
	}
}

func (a *archives) end() { <-a.busy }

// Backup makes a backup that can be sent.
func (a *archives) Backup(ctx context.Context) (admin.Backup, error) {
	if err := a.begin(); err != nil {
		return admin.Backup{}, err
	}
	p, err := newPack(ctx, a.data, func(w io.Writer) error {
		_, err := a.db.Backup(w)
		return err
	}, a.log)
	if err != nil {
		a.end()
		return admin.Backup{}, err
	}
	return admin.Backup{
		Name:  fmt.Sprintf("perch-%s-%s.tar", p.manifest.Appliance, p.manifest.Created.Format("20060102-150405")),
		Size:  p.size(),
		Write: func(w io.Writer) error { return p.write(ctx, w) },
		Close: func() { p.close(); a.end() },
	}, nil
}

// backup is the command. It asks the running appliance, and reads the data
// directory itself where none runs.
func backup(ctx context.Context, args []string, out io.Writer) error {
	var r reach
	f := newFlags("backup")
	r.register(f)
	force := f.Bool("force", false, "replace FILE where it is there")
	rest, err := parse(f, args, 1, 1)
	if err != nil {
		return err
	}
	write, err := r.backupSource(ctx)
	if err != nil {
		return err
	}
	if rest[0] == "-" {
		_, err := write(out)
		return err
	}
	m, err := writeBackup(rest[0], *force, write)
	if err == nil {
		fmt.Fprintf(out, "%s: %s\n", rest[0], m)
	}
	return err
}

// backupSource is a function that writes a backup and says what is in it.
func (r *reach) backupSource(ctx context.Context) (func(io.Writer) (manifest, error), error) {
	c, running, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	if running {
		return func(w io.Writer) (manifest, error) { return c.fetchBackup(ctx, w) }, nil
	}
	data := dataPath(r.data)
	path := databasePath(data)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no appliance runs here, and its data cannot be read (%w); name its data directory with --data, or an appliance elsewhere with --url", err)
	}
	return func(w io.Writer) (manifest, error) {
		p, err := newPack(ctx, data, func(w io.Writer) error {
			_, err := store.BackupFile(path, lockWithin, w)
			return err
		}, slog.Default())
		if err != nil {
			return manifest{}, err
		}
		defer p.close()
		return p.manifest, p.write(ctx, w)
	}, nil
}

// lockWithin is how long a command waits for a database that is in use.
const lockWithin = time.Second

// writeBackup writes a backup into a file that only its owner can read, and
// that is there whole or not at all.
func writeBackup(path string, force bool, write func(io.Writer) (manifest, error)) (m manifest, err error) {
	if info, err := os.Lstat(path); err == nil && (info.IsDir() || !force) {
		return m, alreadyThere(path, info.IsDir())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".perch-backup-*.tmp") // mode 0600
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) // it has another name by then, if all went well
	m, err = write(f)
	if err != nil {
		return m, errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Close()); err == nil {
		if force {
			err = os.Rename(f.Name(), path)
		} else {
			err = nameNew(f.Name(), path)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return m, alreadyThere(path, false)
	}
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, syncDirectory(filepath.Dir(path))
}

func alreadyThere(path string, folder bool) error {
	if folder {
		return fmt.Errorf("%s is a folder; name a file in it", path)
	}
	return fmt.Errorf("%s is there already; name another file, or replace it with --force", path)
}

// nameNew gives a file a name that nothing has. A file system that has no links,
// as that of most sticks, cannot keep others from taking it at the same moment.
func nameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// fetchBackup has the running appliance make a backup. What arrives is checked
// against its own manifest.
func (c *client) fetchBackup(ctx context.Context, w io.Writer) (manifest, error) {
	answer, err := c.exchange(ctx, http.MethodGet, "/api/v1/backup", nil)
	if err != nil {
		return manifest{}, err
	}
	defer answer.Body.Close()
	received := io.TeeReader(answer.Body, w)
	m, err := unpack(received, func(manifest) error { return nil }, func(archived) (io.WriteCloser, error) { return unkept{io.Discard}, nil })
	if err != nil {
		return m, err
	}
	_, err = io.Copy(io.Discard, received) // the end of the tar
	if err != nil {
		return m, fmt.Errorf("read the backup: %w", err)
	}
	return m, nil
}

// unkept is a file that is not kept.
type unkept struct{ io.Writer }

func (unkept) Close() error { return nil }

// exchange sends a request whose body or answer may be of any length, and takes
// as long as it takes.
func (c *client) exchange(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("the address %q cannot be used: %w", c.base, err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	patient := *c.http
	patient.Timeout = 0
	answer, err := patient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	if answer.StatusCode >= 300 {
		var text bytes.Buffer
		_, _ = io.Copy(&text, io.LimitReader(answer.Body, mostAnswer)) // without it the status is what is told
		return nil, errors.Join(refusal(answer.Status, text.Bytes()), answer.Body.Close())
	}
	return answer, nil
}
