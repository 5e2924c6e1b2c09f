package appliance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perch/agent/diary"
	"perch/event"
	"perch/gateway/admin"
	"perch/store"
	"perch/store/archive"
)

// diaryKey is the file of the key that the diary is signed with.
const diaryKey = "diary-key"

// newDiary opens the diary, and makes its key at the first start.
func (a *Appliance) newDiary() (err error) {
	_, err = os.Stat(filepath.Join(a.Data, diaryKey))
	begins := errors.Is(err, fs.ErrNotExist)
	if a.Signer, err = SigningKey(a.Data, a.Log); err != nil {
		return err
	}
	a.Diary, err = diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](a.DB, "diary"),
		Heads: store.NewTable[diary.Head](a.DB, "diary-head"), Key: a.Signer, Begins: begins, Keep: a.Config().Diary.Keep, Who: a.Characters.Who,
		Sentiment: a.sentiment, Wrote: a.wrote, Log: a.Log})
	return err
}

// SigningKey is the appliance's Ed25519 key, which is made where there is none.
func SigningKey(data string, log *slog.Logger) (diary.Key, error) {
	seed, err := Secret(data, diaryKey, log)
	if err != nil {
		return diary.Key{}, err
	}
	return keyOf(data, seed)
}

// keyOf is the key of the seed in the file of it.
func keyOf(data, seed string) (diary.Key, error) {
	key, err := diary.NewKey(seed)
	if err != nil {
		return key, fmt.Errorf("%s: %w", filepath.Join(data, diaryKey), err)
	}
	return key, nil
}

// wrote publishes an entry of the diary. The event is of no session: one that was over
// before the entry was written does not begin again.
func (a *Appliance) wrote(e diary.Entry) {
	a.Bus.Publish(e.Robot, "", event.Recorded{Seq: e.Seq, Hash: e.Hash, Character: e.Character, Session: e.Session,
		Type: string(e.Type), Payload: e.Payload})
}

// diaryPart is the diary's writing.
func (a *Appliance) diaryPart() part {
	return part{run: until(func(ctx context.Context) { a.Diary.Run(ctx, a.Bus.ReadFrom(1)) }), condition: only(func() admin.Part {
		return admin.Part{Name: "diary", OK: a.Diary.Err() == nil, Note: errorText(a.Diary.Err())}
	})}
}

// ReadKey is SigningKey that makes none: a key without a diary's head counts as one whose diary
// was removed. Its error wraps fs.ErrNotExist where there is no key.
func ReadKey(data string) (diary.Key, error) {
	text, err := os.ReadFile(filepath.Join(data, diaryKey))
	if errors.Is(err, fs.ErrNotExist) {
		return diary.Key{}, fmt.Errorf("%s has no %s, which a start makes: name the data directory with --data (%w)", data, diaryKey, fs.ErrNotExist)
	}
	if err != nil {
		return diary.Key{}, fmt.Errorf("read the diary's key: %w", err)
	}
	return keyOf(data, strings.TrimSpace(string(text)))
}

// CheckDiary looks at the diary of an appliance that does not run. Nothing is changed.
func CheckDiary(data string) (diary.Report, error) {
	key, err := ReadKey(data)
	if err != nil {
		return diary.Report{}, err
	}
	f, err := os.Open(archive.DatabasePath(data))
	if err != nil {
		return diary.Report{}, fmt.Errorf("read the diary: %w", err)
	}
	defer f.Close()
	var head *diary.Head
	var list []diary.Entry
	_, err = store.Check(f, store.Options{Migrations: Migrations()}, func(table, key string, value []byte) error {
		switch table {
		case "diary-head":
			return json.Unmarshal(value, &head)
		case "diary":
			var e diary.Entry
			if err := json.Unmarshal(value, &e); err != nil {
				return err
			}
			list = append(list, diary.Placed(key, e))
		}
		return nil
	})
	if err != nil {
		return diary.Report{}, err
	}
	return diary.Check(key.Public(), head, slices.Values(list)), nil
}
