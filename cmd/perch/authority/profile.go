package authority

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strings"
)

// Profile returns the configuration profile with which an iPhone, an iPad or a Mac installs an authority. It is not signed.
func Profile(c *x509.Certificate) string {
	var name strings.Builder
	_ = xml.EscapeText(&name, []byte(c.Subject.CommonName)) // a strings.Builder does not fail
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>PayloadContent</key>
	<array>
		<dict>
			<key>PayloadCertificateFileName</key>
			<string>perch-authority.crt</string>
			<key>PayloadContent</key>
			<data>%[1]s</data>
			<key>PayloadDisplayName</key>
			<string>%[2]s</string>
			<key>PayloadIdentifier</key>
			<string>perch.authority.%[3]s</string>
			<key>PayloadType</key>
			<string>com.apple.security.root</string>
			<key>PayloadUUID</key>
			<string>%[3]s</string>
			<key>PayloadVersion</key>
			<integer>1</integer>
		</dict>
	</array>
	<key>PayloadDescription</key>
	<string>Lets this device open Perch's page over https. SHA-256: %[4]s</string>
	<key>PayloadDisplayName</key>
	<string>%[2]s</string>
	<key>PayloadIdentifier</key>
	<string>perch.%[5]s</string>
	<key>PayloadType</key>
	<string>Configuration</string>
	<key>PayloadUUID</key>
	<string>%[5]s</string>
	<key>PayloadVersion</key>
	<integer>1</integer>
</dict>
</plist>
`, base64.StdEncoding.EncodeToString(c.Raw), name.String(), uuid("authority", c), Fingerprint(c), uuid("profile", c))
}

// uuid returns a UUID (RFC 9562, version 8) derived from purpose and c.
func uuid(purpose string, c *x509.Certificate) string {
	h := sha256.Sum256(append([]byte(purpose), c.Raw...))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}
