package appliance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perch/agent/diary"
	"perch/gateway/admin"
	"perch/store"
	"perch/store/archive"
)

// diaryKey is the file of the key that the diary is signed with.
const diaryKey = "diary-key"

// newDiary opens the diary, and makes its key at the first start.
func (a *Appliance) newDiary() error {
	seed, err := Secret(a.Data, diaryKey, a.Log)
	if err != nil {
		return err
	}
	if a.Signer, err = diary.NewKey(seed); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(a.Data, diaryKey), err)
	}
	a.Diary, err = diary.Open(diary.Options{Entries: store.NewTable[diary.Entry](a.DB, "diary"),
		Heads: store.NewTable[diary.Head](a.DB, "diary-head"), Key: a.Signer, Keep: a.Config.Diary.Keep, Who: a.Characters.Who,
		Sentiment: a.sentiment, Log: a.Log})
	return err
}

// diaryPart is the diary's writing.
func (a *Appliance) diaryPart() part {
	return part{run: until(func(ctx context.Context) { a.Diary.Run(ctx, a.Bus.ReadFrom(1)) }), condition: only(func() admin.Part {
		return admin.Part{Name: "diary", OK: a.Diary.Err() == nil, Note: errorText(a.Diary.Err())}
	})}
}

// CheckDiary looks at the diary of an appliance that does not run. Nothing is changed.
func CheckDiary(data string) (diary.Report, error) {
	text, err := os.ReadFile(filepath.Join(data, diaryKey))
	if errors.Is(err, fs.ErrNotExist) {
		return diary.Report{}, fmt.Errorf("%s has no %s, which a start makes: name the data directory with --data", data, diaryKey)
	}
	if err != nil {
		return diary.Report{}, fmt.Errorf("read the diary's key: %w", err)
	}
	key, err := diary.NewKey(strings.TrimSpace(string(text)))
	if err != nil {
		return diary.Report{}, fmt.Errorf("%s: %w", filepath.Join(data, diaryKey), err)
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
