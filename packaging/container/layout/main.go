// Program layout packs root file systems of several architectures into one image archive of the
// Open Container Initiative. The same root file systems give the same bytes: files are sorted,
// and no time is later than SOURCE_DATE_EPOCH.
package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

// options describe the image.
type options struct {
	version, revision, source string
	level                     int
	epoch                     time.Time
}

func run(args []string) error {
	var o options
	f := flag.NewFlagSet("layout", flag.ContinueOnError)
	out := f.String("o", "", "the archive to write")
	f.StringVar(&o.version, "version", "", "version of the package")
	f.StringVar(&o.revision, "revision", "", "commit that it is made from")
	f.StringVar(&o.source, "source", "", "where its sources are on the web")
	f.IntVar(&o.level, "level", gzip.BestCompression, "of gzip")
	if err := f.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH is the time of the image, in seconds; it is not set")
	}
	o.epoch = time.Unix(seconds, 0).UTC()
	if *out == "" || o.version == "" || f.NArg() == 0 {
		return errors.New("usage: layout -o FILE -version VERSION ARCHITECTURE=FOLDER [ARCHITECTURE=FOLDER]")
	}
	return write(*out, f.Args(), o)
}

// descriptor describes a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant,omitempty"`
}

// document is a manifest of one architecture, or an index of manifests.
type document struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// write packs the root file systems, and removes an incomplete archive.
func write(out string, roots []string, o options) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(out), ".layout-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	b := blobs{dir: filepath.Join(work, "blobs", "sha256")}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	all := document{SchemaVersion: 2, MediaType: indexType, Annotations: annotations(o)}
	for _, root := range roots {
		arch, folder, ok := strings.Cut(root, "=")
		if !ok {
			return fmt.Errorf("%q is no ARCHITECTURE=FOLDER", root)
		}
		d, err := b.image(arch, folder, o)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		all.Manifests = append(all.Manifests, d)
	}
	index, err := b.storeJSON(indexType, all)
	if err != nil {
		return err
	}
	// A tag may contain neither ~ nor +, unlike versions of packages.
	name := "perch:" + strings.NewReplacer("~", "-", "+", "-").Replace(o.version)
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": name, "io.containerd.image.name": "localhost/" + name}
	top, err := json.Marshal(document{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{index}})
	if err != nil {
		return err
	}
	for file, text := range map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": top} {
		if err := os.WriteFile(filepath.Join(work, file), text, 0o644); err != nil {
			return err
		}
	}
	half := filepath.Join(work, "archive")
	to, err := os.Create(half)
	if err != nil {
		return err
	}
	if err := errors.Join(archive(to, work, o.epoch, []string{"archive"}), to.Close()); err != nil {
		return err
	}
	fmt.Println(index.Digest)
	return os.Rename(half, out)
}

// blobs are the contents of a layout, each in a file named by its digest.
type blobs struct{ dir string }

func (b blobs) storeJSON(kind string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	return b.store(kind, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// store stores what from writes, named by its digest.
func (b blobs) store(kind string, from func(io.Writer) error) (descriptor, error) {
	f, err := os.CreateTemp(b.dir, "new-*")
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.New()
	if err := errors.Join(from(io.MultiWriter(f, sum)), f.Chmod(0o644)); err != nil {
		return descriptor{}, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return descriptor{}, err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	return descriptor{MediaType: kind, Digest: "sha256:" + digest, Size: info.Size()}, os.Rename(f.Name(), filepath.Join(b.dir, digest))
}

// image adds the layer, the configuration and the manifest of an architecture.
func (b blobs) image(arch, folder string, o options) (descriptor, error) {
	unpacked := sha256.New()
	layer, err := b.store(layerType, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, o.level)
		if err != nil {
			return err
		}
		return errors.Join(archive(io.MultiWriter(z, unpacked), folder, o.epoch, machineFolders), z.Close())
	})
	if err != nil {
		return descriptor{}, err
	}
	on := platform{Architecture: arch, OS: "linux"}
	if arch == "arm64" {
		on.Variant = "v8"
	}
	configured, err := b.storeJSON(configType, configuration(on, "sha256:"+hex.EncodeToString(unpacked.Sum(nil)), o))
	if err != nil {
		return descriptor{}, err
	}
	d, err := b.storeJSON(manifestType, document{SchemaVersion: 2, MediaType: manifestType, Config: &configured, Layers: []descriptor{layer},
		Annotations: annotations(o)})
	d.Platform = &on
	return d, err
}

// annotations returns the annotations for registries and people.
func annotations(o options) map[string]string {
	a := map[string]string{
		"org.opencontainers.image.title":       "Perch",
		"org.opencontainers.image.description": "A self-hosted voice server for Stack-chan robots",
		"org.opencontainers.image.licenses":    "MIT",
		"org.opencontainers.image.version":     o.version,
		"org.opencontainers.image.created":     o.epoch.Format(time.RFC3339),
		"org.opencontainers.image.base.name":   "debian:trixie",
	}
	for key, value := range map[string]string{"revision": o.revision, "source": o.source} {
		if value != "" {
			a["org.opencontainers.image."+key] = value
		}
	}
	return a
}

// configuration says how the image is run. Healthcheck is a field of Docker that others ignore.
func configuration(on platform, layer string, o options) any {
	labels := annotations(o)
	labels["io.hass.version"], labels["io.hass.type"], labels["io.hass.arch"] = o.version, "app", on.Architecture
	if on.Architecture == "arm64" {
		labels["io.hass.arch"] = "aarch64"
	}
	type object map[string]any
	c := object{
		"created": o.epoch.Format(time.RFC3339), "architecture": on.Architecture, "os": on.OS,
		"config": object{
			"User":       "8003:8003",
			"Entrypoint": []string{"/usr/bin/perch"},
			"Cmd":        []string{"serve"},
			"WorkingDir": "/var/lib/perch",
			"Volumes":    object{"/var/lib/perch": object{}},
			// Robots, TLS and MQTT; the page's own address is for this machine only.
			"ExposedPorts": object{"8003/tcp": object{}, "1883/tcp": object{}},
			"Env": []string{"PATH=/usr/bin:/bin", "HOME=/var/lib/perch", "STATE_DIRECTORY=/var/lib/perch", "TMPDIR=/var/lib/perch",
				"MALLOC_ARENA_MAX=2"},
			"StopSignal": "SIGTERM",
			"Labels":     labels,
			"Healthcheck": object{"Test": []string{"CMD", "/usr/bin/perch", "health"}, "Interval": 30 * time.Second, "Timeout": 20 * time.Second,
				"StartPeriod": time.Minute, "Retries": 3},
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{layer}},
		"history": []object{{"created": o.epoch.Format(time.RFC3339), "created_by": "packaging/container/build.sh"}},
	}
	if on.Variant != "" {
		c["variant"] = on.Variant
	}
	return c
}

// machineFolders matches the content of folders that belongs to the machine, not to the image.
var machineFolders = []string{"dev/*", "proc/*", "run/*", "sys/*", "tmp/*"}

func excluded(out []string, name string) bool {
	return slices.ContainsFunc(out, func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return err == nil && matched
	})
}
