package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// small returns a small root file system. It contains files of a running machine, which must be left out.
func small(t *testing.T, written time.Time) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc", "proc/1", "run/lock", "var/lib/perch"} {
		must.Succeed(t, os.MkdirAll(filepath.Join(root, dir), 0o750))
	}
	long := strings.Repeat("long", 40)
	for _, name := range []string{"etc/z", "etc/a", "proc/1/status", "tmp-is-a-file", "etc/" + long} {
		must.Succeed(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o640))
	}
	must.Succeed(t, errors.Join(os.Link(root+"/etc/a", root+"/etc/b"), os.Symlink("a", root+"/etc/c")))
	for _, name := range []string{"etc/z", "etc"} {
		must.Succeed(t, os.Chtimes(filepath.Join(root, name), written, written))
	}
	old := time.Unix(1_000_000_000, 500)
	must.Succeed(t, os.Chtimes(root+"/tmp-is-a-file", old, old))
	return root
}

// opened returns the headers and the contents of the files in a tar archive, and their names in order.
func opened(t *testing.T, from io.Reader) (headers map[string]*tar.Header, contents map[string]string, order []string) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string]string{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, contents, order
		}
		must.Succeed(t, err)
		text := must.Value(io.ReadAll(r))(t)
		headers[h.Name], contents[h.Name] = h, string(text)
		order = append(order, h.Name)
	}
}

func made(t *testing.T, roots ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.tar")
	must.Succeed(t, run(append([]string{"-o", out, "-version", "1.2.0~rc1+a", "-level", "1"}, roots...)))
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
	text := must.Value(os.ReadFile(out))(t)
	return string(text)
}

func TestTheSameBytes(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	one := made(t, "amd64="+small(t, time.Now()), "arm64="+small(t, time.Now()))
	two := made(t, "amd64="+small(t, time.Now().Add(time.Hour)), "arm64="+small(t, time.Now().Add(-time.Hour)))
	if one != two {
		t.Error("two times of writing give two images")
	}
}

func TestLayout(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	_, files, _ := opened(t, strings.NewReader(made(t, "amd64="+small(t, time.Now()), "arm64="+small(t, time.Now()))))
	decode := func(text string, into any) {
		t.Helper()
		must.Succeed(t, json.Unmarshal([]byte(text), into))
	}
	blob := func(d descriptor) string {
		t.Helper()
		text, ok := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		sum := sha256.Sum256([]byte(text))
		if !ok || int64(len(text)) != d.Size || "sha256:"+hex.EncodeToString(sum[:]) != d.Digest {
			t.Errorf("%v is not what it says", d)
		}
		return text
	}
	var top, all document
	decode(files["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "perch:1.2.0-rc1-a" {
		t.Fatalf("the index is %+v", top)
	}
	decode(blob(top.Manifests[0]), &all)
	if len(all.Manifests) != 2 || all.Manifests[1].Platform.Variant != "v8" {
		t.Fatalf("the manifests are %+v", all)
	}
	for _, d := range all.Manifests {
		var m document
		decode(blob(d), &m)
		var c struct {
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		decode(blob(*m.Config), &c)
		unzip := must.Value(gzip.NewReader(strings.NewReader(blob(m.Layers[0]))))(t)
		layer, err := io.ReadAll(unzip)
		sum := sha256.Sum256(layer)
		if err != nil || !slices.Equal(c.RootFS.DiffIDs, []string{"sha256:" + hex.EncodeToString(sum[:])}) {
			t.Errorf("the layer is %s (%v)", c.RootFS.DiffIDs, err)
		}
		headers, contents, order := opened(t, bytes.NewReader(layer))
		long := "etc/" + strings.Repeat("long", 40)
		want := []string{"etc/", "etc/a", "etc/b", "etc/c", long, "etc/z", "proc/", "run/", "tmp-is-a-file", "var/", "var/lib/", "var/lib/perch/"}
		if !slices.Equal(order, want) {
			t.Errorf("it has %q", order)
		}
		hard, soft := headers["etc/b"], headers["etc/c"]
		if hard.Typeflag != tar.TypeLink || hard.Linkname != "etc/a" || soft.Linkname != "a" || contents["etc/z"] != "etc/z" {
			t.Errorf("its links are %+v, %+v", hard, soft)
		}
		for name := range maps.Keys(headers) {
			if h := headers[name]; h.ModTime.After(time.Unix(1_700_000_000, 0)) || h.Uname != "" {
				t.Errorf("%s is of %s, %s", name, h.ModTime, h.Uname)
			}
		}
		if at := headers["tmp-is-a-file"].ModTime.Unix(); at != 1_000_000_000 {
			t.Errorf("what was old is of %d", at)
		}
	}
}

func TestBadArguments(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		epoch, says string
		args        []string
	}{
		{"", "SOURCE_DATE_EPOCH", []string{"-o", out, "-version", "1", "amd64=x"}},
		{"1", "usage", []string{"-o", out, "-version", "1"}},
		{"1", "not ARCHITECTURE=FOLDER", []string{"-o", out, "-version", "1", "amd64"}},
		{"1", "no such file", []string{"-o", out, "-version", "1", "amd64=/no/where"}},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		if err := run(c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, not %q", c.args, err, c.says)
		}
		if left, _ := os.ReadDir(filepath.Dir(out)); len(left) > 0 {
			t.Errorf("%v leaves %v", c.args, left)
		}
	}
}
