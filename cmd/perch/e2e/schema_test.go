package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/diary"
	"perch/agent/notice"
	"perch/agent/passport"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/datadir"
	"perch/device"
	"perch/gateway/bridge"
	"perch/gateway/homeassistant"
	"perch/gateway/owner/daily"
	"perch/gateway/robot"
	"perch/must"
	"perch/ota"
	"perch/perception"
	"perch/store"
	"perch/store/archive"
	"perch/store/archive/archivetest"
)

// writesFixture is the environment variable that makes TestEverySchemaIsRead write the fixture of the current
// schema, if its value is "write". A fixture is written only once, because it is an example of the data that
// installations have.
const writesFixture = "PERCH_FIXTURE"

const fixtureRobot device.ID = "a0b1c2d3e4f5"

var fixtureImage = []byte("an image of the fixture")

// kept describes a table of the database.
type kept struct {
	key    string                                      // key of the record in the fixture
	make   func() any                                  // makes the record of the fixture
	decode func(text []byte) (again []byte, err error) // decodes a record with the current type, and encodes it again
}

// keeps returns the description of a table of T. set changes a record with values in all fields into a valid one; it
// may be nil.
func keeps[T any](key string, set func(v *T)) kept {
	return kept{key: key,
		make: func() any {
			var v T
			crowd(reflect.ValueOf(&v).Elem(), 0)
			if set != nil {
				set(&v)
			}
			return v
		},
		decode: func(text []byte) ([]byte, error) {
			var v T
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(&v); err != nil {
				return nil, err
			}
			return json.Marshal(v)
		}}
}

// tables returns all tables. A change of a record's type needs a migration.
func tables() map[string]kept {
	sha := fmt.Sprintf("%x", sha256.Sum256(fixtureImage))
	later := time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC)
	return map[string]kept{
		"appliance": keeps("id", func(v *string) { *v = "0badcafe" }),
		"robots":    keeps(string(fixtureRobot), func(v *device.Robot) { v.ID = fixtureRobot }),
		"memory":    keeps("text", func(v *agent.Entry) { v.ID, v.Expires = "text", later }),
		"notifications": keeps("text", func(v *notice.Notification) {
			v.ID, v.State, v.Urgency, v.Expires = "text", "received", "normal", later
		}),
		"diary":           keeps("00000000000000000007", func(v *diary.Entry) { v.Seq = 7 }),
		"days":            keeps[daily.Day]("2026-01-02/"+string(fixtureRobot), nil),
		"diary-head":      keeps[diary.Head]("head", nil),
		"timers":          keeps("text", func(v *agent.Timer) { v.ID, v.Due = "text", later }),
		"sessions":        keeps[robot.SessionRecord]("20260102T030405.000000000-000001", nil),
		"turns":           keeps[robot.TurnRecord]("20260102T030405.000000000-000001", nil),
		"perception":      keeps(string(fixtureRobot), func(v *perception.State) { v.Robot = fixtureRobot }),
		"waiting":         keeps(string(fixtureRobot), func(v *[]robot.Command) { (*v)[0].Thing, (*v)[0].Expires = "say", later }),
		"conversations":   keeps[agent.Conversation](string(fixtureRobot), nil),
		"announced":       keeps[[]string]("topics", nil),
		"mqtt-waiting":    keeps(string(fixtureRobot), func(v *[]homeassistant.Waiting) { (*v)[0].Expires = later }),
		"bridge-turns":    keeps[bridge.Turn]("20260102T030405.000000000-000001", nil),
		"firmware":        keeps(sha, func(v *ota.Record) { v.SHA256, v.Size = sha, int64(len(fixtureImage)) }),
		"firmware-robots": keeps[ota.Unit](string(fixtureRobot), nil),
		"passports":       keeps[passport.Passport]("default", nil),
		"relay-tokens":    keeps[string]("vtube_studio", nil),
	}
}

// crowd sets every field of a value.
func crowd(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"k":1}`)))
		return
	case device.ID:
		v.Set(reflect.ValueOf(fixtureRobot))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf("text"))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		crowd(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		crowd(v.Index(0), depth+1)
	case reflect.Array:
		for i := range v.Len() {
			crowd(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		crowd(key, depth+1)
		crowd(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && depth < 8 {
				crowd(v.Field(i), depth+1)
			}
		}
	}
}

// writeFixture creates a data directory with one record in every table.
func writeFixture(t *testing.T, dir string) {
	t.Helper()
	if store.Exists(dir) {
		t.Fatalf("%s is there already", dir)
	}
	archivetest.Write(t, filepath.Join(dir, "firmware", fmt.Sprintf("%x.bin", sha256.Sum256(fixtureImage))), fixtureImage)
	db := must.Value(store.Open(archive.DatabasePath(dir), store.Options{Migrations: datadir.Migrations(), FlushAfter: time.Hour}))(t)
	for name, k := range tables() {
		store.NewTable[any](db, name).PutSoon(k.key, k.make())
	}
	must.Succeed(t, db.Close())
}

// all returns the records of a database, by table and key.
func all(t *testing.T, path string) (content store.Content, records map[string]json.RawMessage) {
	t.Helper()
	f, err := os.Open(path)
	must.Succeed(t, err)
	defer f.Close()
	records = map[string]json.RawMessage{}
	content, err = store.Check(f, store.Options{Migrations: datadir.Migrations()}, func(table, key string, value []byte) error {
		records[table+" "+key] = value
		return nil
	})
	must.Succeed(t, err)
	return content, records
}

// same reports whether two JSON texts have the same value.
func same(a, b []byte) bool {
	var x, y any
	return errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)) == nil && reflect.DeepEqual(x, y)
}

// TestEverySchemaIsRead: the program opens the data of every earlier schema, and loses nothing: every record is there,
// and its current type has all fields of the record.
func TestEverySchemaIsRead(t *testing.T) {
	today := filepath.Join("testdata", fmt.Sprint("schema-", len(datadir.Migrations())))
	if os.Getenv(writesFixture) == "write" {
		writeFixture(t, today)
	}
	if !store.Exists(today) {
		t.Fatalf("the schema of today has no fixture; make it with %s=write go test -run TestEverySchemaIsRead ./cmd/perch/e2e, and commit it",
			writesFixture)
	}
	fixtures, err := filepath.Glob("testdata/schema-*")
	if err != nil || len(fixtures) != len(datadir.Migrations())+1 {
		t.Errorf("of %d schemas there are the fixtures %v, %v", len(datadir.Migrations())+1, fixtures, err)
	}
	for _, fixture := range fixtures {
		t.Run(filepath.Base(fixture), func(t *testing.T) {
			data := t.TempDir()
			must.Succeed(t, os.CopyFS(data, os.DirFS(fixture)))
			content, before := all(t, archive.DatabasePath(data))
			if want, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(fixture), "schema-")); content.Schema != want {
				t.Fatalf("it has the schema %d", content.Schema)
			}
			c := appliancetest.Config()
			a := must.Value(appliance.New(&c, appliancetest.Options(data)))(t)
			robots, images := a.Robots.List(), a.Firmware.List()
			a.Close()
			if a.ID != "0badcafe" || len(robots) != 1 || len(images) != 1 {
				t.Errorf("the appliance %s has %d robots and %d images", a.ID, len(robots), len(images))
			}
			content, after := all(t, archive.DatabasePath(data))
			if content.Schema != len(datadir.Migrations()) {
				t.Errorf("it still has the schema %d", content.Schema)
			}
			legible(t, before, after, content.Schema == len(datadir.Migrations()) && fixture == today)
		})
	}
}

// legible compares the records of a database before and after the program has opened it. If unchanged is true, the
// records must be the same.
func legible(t *testing.T, before, after map[string]json.RawMessage, unchanged bool) {
	t.Helper()
	if len(after) < len(before) {
		t.Errorf("of %d records %d are left: %v", len(before), len(after), slices.Sorted(maps.Keys(after)))
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		// The program marks the first hour of the installation as over.
		if unchanged && name != "appliance first-hour" && !same(before[name], after[name]) {
			t.Errorf("%s was\n%s\nand is\n%s", name, before[name], after[name])
		}
		table, _, _ := strings.Cut(name, " ")
		k, known := tables()[table]
		if !known {
			t.Errorf("nobody reads %s", name)
			continue
		}
		again, err := k.decode(after[name])
		if err != nil || !same(after[name], again) {
			t.Errorf("of %s\n%s\nis read\n%s\n%v", name, after[name], again, err)
		}
	}
}

// TestEveryTableIsInTheFixture: tables lists every table that the program opens, and the current fixture has a record
// of each.
func TestEveryTableIsInTheFixture(t *testing.T) {
	files := must.Value(filepath.Glob("../*/*.go"))(t)
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`store\.NewTable\[.*?\]\([\w.]*(?:DB|db), "(.*?)"\)`).FindAllStringSubmatch(string(archivetest.Read(t, name)), -1) {
			found[m[1]] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(tables())); !slices.Equal(got, want) {
		t.Errorf("the program has the tables %v, of which there are records for %v", got, want)
	}
	_, records := all(t, filepath.Join("testdata", fmt.Sprint("schema-", len(datadir.Migrations())), "perch.db"))
	for name, k := range tables() {
		if _, there := records[name+" "+k.key]; !there {
			t.Errorf("the fixture has no record of %s", name)
		}
	}
}

// TestANewerDatabase: the program refuses the database of a newer version with an error that contains a remedy, and
// does not change the file.
func TestANewerDatabase(t *testing.T) {
	data := t.TempDir()
	later := append(datadir.Migrations(), store.Migration{Name: "later", Apply: func(*store.Tx) error { return nil }})
	db, err := store.Open(archive.DatabasePath(data), store.Options{Migrations: later})
	if err == nil {
		err = db.Close()
	}
	must.Succeed(t, err)
	before := archivetest.Read(t, archive.DatabasePath(data))
	c := appliancetest.Config()
	_, err = appliance.New(&c, appliancetest.Options(data))
	if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "install that version again, or restore a backup") {
		t.Errorf("newApp: %v", err)
	}
	if !bytes.Equal(archivetest.Read(t, archive.DatabasePath(data)), before) {
		t.Error("the file was changed")
	}
}
