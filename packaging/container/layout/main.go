// Command layout packs root file systems for several architectures into one archive: a container
// image in the OCI format. The archive is reproducible: its files are sorted, and no file has a
// time after the one in the environment variable SOURCE_DATE_EPOCH.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	version  string    // version of the Debian package
	revision string    // commit; may be empty
	source   string    // URL of the source code; may be empty
	level    int       // gzip level
	epoch    time.Time // latest time in the image
}

// run writes the archive that the arguments describe.
func run(args []string) error {
	var o options
	f := flag.NewFlagSet("layout", flag.ContinueOnError)
	out := f.String("o", "", "the archive to write")
	f.StringVar(&o.version, "version", "", "version of the package")
	f.StringVar(&o.revision, "revision", "", "commit that the image is built from")
	f.StringVar(&o.source, "source", "", "URL of the source code")
	f.IntVar(&o.level, "level", gzip.BestCompression, "gzip level")
	if err := f.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH must be set to the time of the image, in seconds since 1970")
	}
	o.epoch = time.Unix(seconds, 0).UTC()
	if *out == "" || o.version == "" || f.NArg() == 0 {
		return errors.New("usage: layout -o FILE -version VERSION ARCHITECTURE=FOLDER [ARCHITECTURE=FOLDER]")
	}
	return write(*out, f.Args(), o)
}

// descriptor is an OCI descriptor, which refers to a blob: a file in the archive, named by its
// digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// platform is the kind of machine that an image runs on.
type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant,omitempty"`
}

// document is the manifest of an image for one architecture, or an index of manifests.
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

// write writes the archive to the file out, and prints the digest of the image's index. Each root has
// the form ARCHITECTURE=FOLDER, with an architecture of Go such as arm64. If the archive cannot be
// written, the file out is unchanged.
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
	images := document{SchemaVersion: 2, MediaType: indexType, Annotations: annotations(o)}
	for _, root := range roots {
		arch, folder, ok := strings.Cut(root, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=FOLDER", root)
		}
		d, err := b.image(arch, folder, o)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		images.Manifests = append(images.Manifests, d)
	}
	index, err := b.storeJSON(indexType, images)
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
	incomplete := filepath.Join(work, "archive")
	f, err := os.Create(incomplete)
	if err != nil {
		return err
	}
	if err := errors.Join(archive(f, work, o.epoch, []string{"archive"}), f.Close()); err != nil {
		return err
	}
	fmt.Println(index.Digest)
	return os.Rename(incomplete, out)
}

// blobs is the folder of an OCI image layout that stores blobs, in files named by their digests.
type blobs struct{ dir string }

// storeJSON stores content as a JSON blob.
func (b blobs) storeJSON(mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	return b.store(mediaType, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// store stores a blob, whose content the function writeTo writes, and returns the blob's descriptor.
func (b blobs) store(mediaType string, writeTo func(io.Writer) error) (descriptor, error) {
	f, err := os.CreateTemp(b.dir, "new-*")
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.New()
	if err := errors.Join(writeTo(io.MultiWriter(f, sum)), f.Chmod(0o644)); err != nil {
		return descriptor{}, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return descriptor{}, err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: info.Size()}, os.Rename(f.Name(), filepath.Join(b.dir, digest))
}

// image stores the layer, the configuration and the manifest of the image for an architecture. It
// returns the descriptor of the manifest.
func (b blobs) image(arch, folder string, o options) (descriptor, error) {
	unpacked := sha256.New()
	layer, err := b.store(layerType, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, o.level)
		if err != nil {
			return err
		}
		return errors.Join(archive(io.MultiWriter(z, unpacked), folder, o.epoch, machineFiles), z.Close())
	})
	if err != nil {
		return descriptor{}, err
	}
	p := platform{Architecture: arch, OS: "linux"}
	if arch == "arm64" {
		p.Variant = "v8"
	}
	config, err := b.storeJSON(configType, configuration(p, "sha256:"+hex.EncodeToString(unpacked.Sum(nil)), o))
	if err != nil {
		return descriptor{}, err
	}
	d, err := b.storeJSON(manifestType, document{SchemaVersion: 2, MediaType: manifestType, Config: &config, Layers: []descriptor{layer},
		Annotations: annotations(o)})
	d.Platform = &p
	return d, err
}

// annotations returns the standard annotations of the image.
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

// configuration returns the image configuration. layer is the digest of the uncompressed layer.
func configuration(p platform, layer string, o options) any {
	labels := annotations(o)
	labels["io.hass.version"], labels["io.hass.type"], labels["io.hass.arch"] = o.version, "app", p.Architecture
	if p.Architecture == "arm64" {
		labels["io.hass.arch"] = "aarch64"
	}
	type object map[string]any
	c := object{
		"created": o.epoch.Format(time.RFC3339), "architecture": p.Architecture, "os": p.OS,
		"config": object{
			"User":       "8003:8003",
			"Entrypoint": []string{"/usr/bin/perch"},
			"Cmd":        []string{"serve"},
			"WorkingDir": "/var/lib/perch",
			"Volumes":    object{"/var/lib/perch": object{}},
			// 8003 is for robots and the page, 1883 for MQTT.
			"ExposedPorts": object{"8003/tcp": object{}, "1883/tcp": object{}},
			"Env": []string{"PATH=/usr/bin:/bin", "HOME=/var/lib/perch", "STATE_DIRECTORY=/var/lib/perch", "TMPDIR=/var/lib/perch",
				"MALLOC_ARENA_MAX=2"},
			"StopSignal": "SIGTERM",
			"Labels":     labels,
			// Only Docker uses Healthcheck; OCI runtimes ignore it.
			"Healthcheck": object{"Test": []string{"CMD", "/usr/bin/perch", "health"}, "Interval": 30 * time.Second, "Timeout": 20 * time.Second,
				"StartPeriod": time.Minute, "Retries": 3},
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{layer}},
		"history": []object{{"created": o.epoch.Format(time.RFC3339), "created_by": "packaging/container/build.sh"}},
	}
	if p.Variant != "" {
		c["variant"] = p.Variant
	}
	return c
}

// machineFiles are patterns of files that belong to the running machine, not to the image.
var machineFiles = []string{"dev/*", "proc/*", "run/*", "sys/*", "tmp/*"}

// archive writes the files in a folder as a tar archive. It is reproducible: the files are sorted by
// name, owners are numbers, and a time after latest is replaced by latest. Files whose path matches
// a pattern in exclude are left out.
func archive(w io.Writer, folder string, latest time.Time, exclude []string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	args := []string{"--create", "--directory=" + folder, "--format=gnu", "--sort=name", "--numeric-owner", "--clamp-mtime",
		fmt.Sprintf("--mtime=@%d", latest.Unix()), "--anchored"}
	for _, pattern := range exclude {
		args = append(args, "--exclude="+pattern)
	}
	args = append(args, "--")
	for _, e := range entries { // if the folder were archived as ".", the names in the archive would begin with "./"
		args = append(args, e.Name())
	}
	var stderr bytes.Buffer
	tar := exec.Command("tar", args...)
	tar.Stdout, tar.Stderr = w, &stderr
	if err := tar.Run(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
