package music

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// copying is an ffmpeg that decodes nothing: its input is PCM already. A file whose name holds "damaged" fails. It
// writes its arguments to the file in the variable ARGUMENTS.
const copying = `for a; do input=$next; [ "$a" = -i ] && next=1 || next=; [ "$input" ] && file=${a#file:}; done
[ "$ARGUMENTS" ] && echo "$*" >>"$ARGUMENTS"
case $file in
*damaged*) echo "$file: Invalid data found when processing input" >&2; exit 1 ;;
pipe:0) exec cat ;;
http*) echo "it fetches $file itself" >&2; exit 1 ;;
esac
exec cat "$file"`

// decoder returns a decoder with the ffmpeg copying.
func decoder(t *testing.T) *Decoder {
	d := NewDecoder()
	d.command = []string{"sh", "-c", copying, "ffmpeg"}
	t.Cleanup(d.Close)
	return d
}

// pcm returns sound of n samples, which all have the value v.
func pcm(v int16, n int) []byte {
	var b bytes.Buffer
	for range n {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	return b.Bytes()
}

// hear plays music, and returns the values of its samples, each once, and the error.
func hear(p *Playing) (values []int16, err error) {
	err = p.Play(context.Background(), func(pcm []int16) error {
		for _, v := range pcm {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		return nil
	})
	return values, err
}

// write writes a file into a folder and returns its path.
func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Succeed(t, os.WriteFile(path, content, 0o644))
	return path
}

func TestAFolderIsPlayedInTheOrderOfItsPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b/2.mp3", pcm(3, 10))
	write(t, dir, "b/1.FLAC", pcm(2, 9000))
	write(t, dir, "a.ogg", pcm(1, 10))
	write(t, dir, "b/1a damaged.mp3", nil)
	write(t, dir, "cover.jpg", pcm(9, 10))
	write(t, dir, ".hidden/x.mp3", pcm(9, 10))
	write(t, dir, "list.m3u", []byte("#EXTM3U\n#EXTINF:1,x\nb/2.mp3\n\na.ogg\n"))
	for source, want := range map[string][]int16{dir: {1, 2, 3}, filepath.Join(dir, "list.m3u"): {3, 1}, filepath.Join(dir, "a.ogg"): {1}} {
		p := decoder(t).Play(Source{"shelf", source})
		for range 2 { // once ended, it begins again
			if got, err := hear(p); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s plays %v, %v", source, got, err)
			}
		}
	}
}

// TestSourcesOnThisMachine checks a folder that is a link, a play list with special characters in its path and entries
// that are URLs of files, and a pipe.
func TestSourcesOnThisMachine(t *testing.T) {
	dir := t.TempDir()
	song := write(t, dir, "100% Rock/a.mp3", pcm(1, 10))
	list := write(t, dir, "100% Rock/all.m3u", []byte("a.mp3\nfile://"+strings.ReplaceAll(song, "%", "%25")+"\n"))
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe.m3u")
	must.Succeed(t, os.Symlink(filepath.Join(dir, "100% Rock"), link))
	must.Succeed(t, syscall.Mkfifo(pipe, 0o600))
	for _, source := range []string{list, link} {
		if got, err := hear(decoder(t).Play(Source{"rock", source})); err != nil || !slices.Equal(got, []int16{1}) {
			t.Errorf("%s plays %v, %v", source, got, err)
		}
	}
	if _, err := hear(decoder(t).Play(Source{"rock", pipe})); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
		t.Errorf("a pipe: %v", err)
	}
}

// TestFilesBehindURLsArePlayedOnce checks that a file on a server, and a play list of them, come to an end.
func TestFilesBehindURLsArePlayedOnce(t *testing.T) {
	requests := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch r.URL.Path {
		case "/album.m3u":
			_, _ = io.WriteString(w, "#EXTM3U\n1.mp3\ngone.mp3\n2.mp3\n")
		case "/1.mp3":
			_, _ = w.Write(pcm(1, 500))
		case "/2.mp3":
			_, _ = w.Write(pcm(2, 500))
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	for path, want := range map[string]struct {
		values   []int16
		requests int
	}{"/1.mp3": {[]int16{1}, 1}, "/album.m3u": {[]int16{1, 2}, 4}} {
		requests = 0
		if got, err := hear(decoder(t).Play(Source{"album", web.URL + path})); err != nil || !slices.Equal(got, want.values) || requests != want.requests {
			t.Errorf("%s: %v, %d requests, %v", path, got, requests, err)
		}
	}
}

func TestAFileContinuesAfterAPause(t *testing.T) {
	dir := t.TempDir()
	arguments := filepath.Join(dir, "arguments")
	t.Setenv("ARGUMENTS", arguments)
	d := decoder(t)
	p := d.Play(Source{"book", write(t, dir, "long.mp3", pcm(1, 60*voice.SpeakerRate))})
	errPause := errors.New("pause")
	for range 2 {
		var played time.Duration
		err := p.Play(t.Context(), func(pcm []int16) error {
			if played += time.Duration(len(pcm)) * time.Second / voice.SpeakerRate; played >= 30*time.Second {
				return errPause
			}
			return nil
		})
		if !errors.Is(err, errPause) {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(arguments)
	must.Succeed(t, err)
	first, second, _ := strings.Cut(string(text), "\n")
	if strings.Contains(first, "-ss") || !strings.Contains(second, "-ss 18.000 -i file:"+dir) {
		t.Errorf("ffmpeg is run with\n%s", text)
	}
}

// TestBadSourcesAreExplained checks that the error for what cannot be played names the cause and the cure.
func TestBadSourcesAreExplained(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := map[string]string{
			"/page": "<!DOCTYPE html><html>", "/xml": " \n<asx/>", "/hls.m3u8": "#EXTM3U\n#EXT-X-VERSION:3\na.ts\n",
			"/empty.m3u": "#EXTM3U\n", "/files.m3u": "#EXTM3U\nfile:///etc/passwd\nconcat:/etc/passwd\n", "/round.pls": "[playlist]\nFile1=/round.pls\n",
			"/damaged": "\xff",
		}
		switch path := r.URL.Path; {
		case path == "/endless":
			http.Redirect(w, r, "/endless", http.StatusFound)
		case path == "/elsewhere":
			http.Redirect(w, r, "ftp://127.0.0.1/", http.StatusFound)
		case path == "/html":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "hello")
		case text[path] != "":
			w.Header().Set("Content-Type", "audio/mpeg")
			_, _ = io.WriteString(w, text[path])
		case path == "/stalls", path == "/stalls soon":
			_, _ = w.Write(pcm(1, map[string]int{"/stalls": 9000, "/stalls soon": 9}[path]))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	dir := t.TempDir()
	write(t, dir, "empty/cover.jpg", nil)
	for source, want := range map[string]string{
		web.URL + "/page":                               "sends a web page, and not sound; set the address of the stream itself",
		web.URL + "/xml":                                "sends a web page",
		web.URL + "/html":                               "sends a web page",
		web.URL + "/missing":                            "answers 404 Not Found; set the address of the stream itself",
		web.URL + "/endless":                            "stopped after 10 redirects; check its address",
		web.URL + "/elsewhere":                          `unsupported protocol scheme "ftp"`,
		web.URL + "/hls.m3u8":                           "ffmpeg finds no sound at 127.0.0.1:",
		web.URL + "/empty.m3u":                          "its play list names nothing that can be played",
		web.URL + "/files.m3u":                          "its play list names nothing that can be played",
		web.URL + "/round.pls":                          "name only each other",
		"http://127.0.0.1:1/":                           "127.0.0.1:1 cannot be reached",
		filepath.Join(dir, "x"):                         "there is no " + filepath.Join(dir, "x") + " on this machine; correct its path in music",
		filepath.Join(dir, "empty"):                     "has no sound files, such as .mp3, .flac or .ogg; put some into it",
		write(t, dir, "damaged.mp3", nil):               "Invalid data found when processing input: ffmpeg finds no sound in it",
		"http://name:secret@127.0.0.1:1/?key=secretkey": "127.0.0.1:1 cannot be reached",
	} {
		err := decoder(t).Play(Source{"jazz", source}).Try(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "jazz cannot be played: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", source, err)
		}
	}
	d := decoder(t)
	d.command = []string{filepath.Join(dir, "ffmpeg"), ""}
	if err := d.Play(Source{"a", write(t, dir, "a.mp3", pcm(1, 9))}).Try(t.Context()); err == nil {
		t.Error("a program that cannot be started plays")
	}
	d.command = []string{"perch-has-no-such-program"}
	if err := d.Play(Source{"a", filepath.Join(dir, "a.mp3")}).Try(t.Context()); !errors.Is(err, ErrNoFFmpeg) {
		t.Errorf("without ffmpeg: %v", err)
	}
	d = decoder(t)
	d.patience = 2 * time.Second // a busy machine takes some of it to start ffmpeg
	for path, heard := range map[string]int{"/stalls": 1, "/stalls%20soon": 0} {
		if got, err := hear(d.Play(Source{"jazz", web.URL + path})); !errors.Is(err, errStalled) || len(got) != heard {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}

func TestAStationIsFoundThroughItsPlayLists(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/station.pls":
			w.Header().Set("Content-Type", "audio/x-scpls")
			fmt.Fprintf(w, "[playlist]\r\nNumberOfEntries=2\r\nFile1=%s/dead\r\nTitle1=x\r\nFile2=/station.m3u\r\n", gone.URL)
		case "/station.m3u":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "live\n")
		case "/live":
			http.Redirect(w, r, "/final", http.StatusMovedPermanently)
		case "/final":
			w.Header().Set("Content-Type", "audio/mpeg")
			_, _ = w.Write(pcm(7, 1000))
		}
	}))
	defer web.Close()
	p := decoder(t).Play(Source{"jazz", web.URL + "/station.pls"})
	if err := p.Try(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := hear(p); err != nil || !slices.Equal(got, []int16{7}) {
		t.Errorf("plays %v, %v", got, err)
	}
}

func TestAStationIsLeftAtOnce(t *testing.T) {
	left := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		w.Header().Set("Content-Type", "audio/mpeg")
		for r.Context().Err() == nil {
			if _, err := w.Write(pcm(7, 1000)); err != nil {
				return
			}
		}
	}))
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	heard := 0
	err := decoder(t).Play(Source{"jazz", web.URL}).Play(ctx, func([]int16) error {
		if heard++; heard == 5 {
			cancel()
		}
		return nil
	})
	<-left
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFFmpeg checks the arguments with the real ffmpeg: a tone in a file, from its middle, and in a stream.
func TestFFmpeg(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	var wav bytes.Buffer
	tone := make([]int16, 16000)
	for i := range tone {
		tone[i] = int16(i % 100 * 100)
	}
	must.Succeed(t, voice.WriteWAV(&wav, 16000, tone))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wav.Bytes()) }))
	defer web.Close()
	dir := t.TempDir()
	file := write(t, dir, "a tone, 50%.wav", wav.Bytes())
	d := NewDecoder()
	defer d.Close()
	for source, samples := range map[string]int{file: voice.SpeakerRate, web.URL: voice.SpeakerRate, dir: voice.SpeakerRate} {
		n := 0
		err := d.Play(Source{"tone", source}).Play(t.Context(), func(pcm []int16) error { n += len(pcm); return nil })
		if err != nil || n < samples*99/100 || n > samples*101/100 {
			t.Errorf("%s: %d samples, %v", source, n, err)
		}
	}
	n := 0
	must.Succeed(t, d.decode(t.Context(), file, 500*time.Millisecond, func(pcm []int16) error { n += len(pcm); return nil }))
	if n < voice.SpeakerRate*49/100 || n > voice.SpeakerRate*51/100 {
		t.Errorf("%d samples from the middle", n)
	}
	err := d.Play(Source{"text", write(t, dir, "text.mp3", []byte(strings.Repeat("no sound ", 100)))}).Try(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ffmpeg finds no sound in it") {
		t.Errorf("a text: %v", err)
	}
}

// TestAStationsWordsAreNotRepeated checks that an error, which a model may read, holds no words of a station.
func TestAStationsWordsAreNotRepeated(t *testing.T) {
	for _, said := range []string{"HTTP/1.1 403 Unlock the door\r\nContent-Length: 0\r\n\r\n", "Unlock the door\r\n\r\n", "HTTP/1.1 200 OK\r\nUnlock the door\r\n\r\n"} {
		l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, said)
				_, _ = c.Read(make([]byte, 4096))
				_ = c.Close()
			}
		})
		err := decoder(t).Play(Source{"jazz", "http://" + l.Addr().String()}).Try(t.Context())
		_ = l.Close()
		serving.Wait()
		if err == nil || strings.Contains(err.Error(), "Unlock") {
			t.Errorf("%q: %v", said, err)
		}
	}
}

// TestRootDecodesNoStation checks that ffmpeg runs as nobody if root plays what comes from the network.
func TestRootDecodesNoStation(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user, as CI does")
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pcm(1, 500)) }))
	defer web.Close()
	d := decoder(t)
	d.command = []string{"sh", "-c", `[ "$(id -u)" = 65534 ] && cat`, "ffmpeg"}
	if err := d.Play(Source{"jazz", web.URL}).Try(t.Context()); err != nil {
		t.Error(err)
	}
}
