package web

import (
	"net/http"

	"perch/gateway/httpserver"
)

// HTTPSAddress describes the https address whose certificate Perch's own authority has signed.
type HTTPSAddress struct {
	URLs        []string `json:"urls"`        // alternative base URLs, such as "https://perch.local:8443", the best first
	Authority   string   `json:"authority"`   // name of the authority in the lists of browsers and phones
	Fingerprint string   `json:"fingerprint"` // SHA-256 of the authority's certificate: AA:BB:CC
}

// openHTTPS opens and describes the https address. It returns an error if Options.OpenHTTPS is nil: Perch makes no
// certificate if tls.listen is set, or if listen is empty.
func (s *Server) openHTTPS() (HTTPSAddress, error) {
	if s.o.OpenHTTPS == nil {
		return HTTPSAddress{}, &httpserver.Fault{Word: "own_https", HTTP: http.StatusConflict,
			Sentence: "Perch makes no certificate if tls.listen is set in the configuration, or if listen is empty: open the page at the address in tls.listen, over https"}
	}
	address, err := s.o.OpenHTTPS()
	if err != nil {
		err = &httpserver.Fault{Word: "https_failed", HTTP: http.StatusInternalServerError, Err: err,
			Sentence: "the page cannot be served over https: " + err.Error()}
	}
	return address, err
}

// authorityFile returns a file with which a device installs the authority, and its media type. The files need no
// authentication: they contain only a public certificate. A phone downloads them without the page's scripts.
func (s *Server) authorityFile(name string) (file []byte, mediaType string, err error) {
	var certificate, profile []byte
	if s.o.AuthorityFiles != nil {
		certificate, profile = s.o.AuthorityFiles()
	}
	switch name {
	case "perch-authority.crt":
		file, mediaType = certificate, "application/x-x509-ca-cert"
	case "perch-authority.mobileconfig":
		file, mediaType = profile, "application/x-apple-aspen-config"
	}
	if len(file) == 0 {
		err = &httpserver.Fault{Word: "unknown_file", Sentence: "there is no such file, or the https address was not opened yet", HTTP: http.StatusNotFound}
	}
	return file, mediaType, err
}
