package datadir

import (
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
	"perch/store"
	"perch/store/archive"
)

// SigningKey returns the appliance's Ed25519 key, which signs the diary and the messages of
// characters. It creates the key if none exists; made reports whether SigningKey has created the
// key.
func SigningKey(data string, log *slog.Logger) (key diary.Key, made bool, err error) {
	_, err = os.Stat(filepath.Join(data, diaryKeyFile))
	made = errors.Is(err, fs.ErrNotExist)
	seed, err := Secret(data, diaryKeyFile, log)
	if err != nil {
		return diary.Key{}, made, err
	}
	key, err = newKey(data, seed)
	return key, made, err
}

// newKey returns the key of a seed. Its error names the key's file in the directory data.
func newKey(data, seed string) (diary.Key, error) {
	key, err := diary.NewKey(seed)
	if err != nil {
		return key, fmt.Errorf("%s: %w", filepath.Join(data, diaryKeyFile), err)
	}
	return key, nil
}

// ReadKey returns the appliance's signing key. If the key does not exist, the error wraps
// fs.ErrNotExist. ReadKey must not create a key: a key without a diary means that somebody has
// removed the diary.
func ReadKey(data string) (diary.Key, error) {
	text, err := os.ReadFile(filepath.Join(data, diaryKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return diary.Key{}, fmt.Errorf("%s has no %s, which perch serve creates; name the data directory with --data (%w)", data, diaryKeyFile, fs.ErrNotExist)
	}
	if err != nil {
		return diary.Key{}, fmt.Errorf("read the diary's key: %w", err)
	}
	return newKey(data, strings.TrimSpace(string(text)))
}

// CheckDiary checks the diary of an appliance that is not running. It only reads files.
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
			list = append(list, diary.FromTable(key, e))
		}
		return nil
	})
	if err != nil {
		return diary.Report{}, err
	}
	return diary.Check(key.Public(), head, slices.Values(list)), nil
}
