package cloudtasks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/apicall"
	"github.com/seed-6f6f2c11/duly/core"
)

// DefaultEndpoint is where Cloud Tasks is.
const DefaultEndpoint = "https://cloudtasks.googleapis.com"

// Config says which queue, and whom its tasks call.
type Config struct {
	// Queue is projects/PROJECT/locations/LOCATION/queues/QUEUE. It has to exist, and the account that the program runs as needs
	// roles/cloudtasks.enqueuer on it, and roles/iam.serviceAccountUser on ServiceAccount.
	Queue string
	// URL is called by POST: the service's URL, or its /v1/run-due.
	URL string
	// ServiceAccount is the e-mail of the account whose OIDC token the call has; the service lets it in.
	ServiceAccount string
	// Audience is the token's audience: URL if empty.
	Audience string
	// Endpoint is DefaultEndpoint if empty.
	Endpoint string
	// Token returns an access token, a new one if renew is true. If nil, the token is the one of the account that the program runs as, from the
	// metadata server of Google Cloud, whose host MetadataHost overrides (GCE_METADATA_HOST in Google's own libraries).
	Token        func(ctx context.Context, renew bool) (string, error)
	MetadataHost string
	// Client is one of the package's own if nil, and Clock core.SystemClock.
	Client *http.Client
	Clock  core.Clock
}

// Alarm makes tasks. It is safe for concurrent use.
type Alarm struct {
	config Config
	target string
	api    apicall.API
}

var queueName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^projects/[^/\s]+/locations/[^/\s]+/queues/[A-Za-z0-9-]{1,100}$`)
})

// New checks the configuration, without any call. Its error is a *core.ConfigError.
func New(c Config) (*Alarm, error) {
	c.Endpoint = strings.TrimSuffix(cmp.Or(c.Endpoint, DefaultEndpoint), "/")
	for field, text := range map[string]string{"URL": c.URL, "Endpoint": c.Endpoint} {
		if err := apicall.CheckURL(field, text, false); err != nil {
			return nil, err
		}
	}
	if !queueName().MatchString(c.Queue) {
		return nil, &core.ConfigError{Field: "Queue", Reason: "must be projects/PROJECT/locations/LOCATION/queues/QUEUE"}
	}
	if !strings.Contains(c.ServiceAccount, "@") {
		return nil, &core.ConfigError{Field: "ServiceAccount", Reason: "must be the e-mail of the service account whose token the call has"}
	}
	c.Audience = cmp.Or(c.Audience, c.URL)
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	if c.Token == nil {
		m := &metadata{host: cmp.Or(c.MetadataHost, defaultMetadataHost), clock: c.Clock, client: c.Client}
		c.Token = m.token
	}
	return &Alarm{config: c, target: c.URL + "\n" + c.ServiceAccount, api: apicall.API{
		Name: "Cloud Tasks", Client: c.Client, Clock: c.Clock, Reason: reason,
		Todo: map[int]string{
			http.StatusUnauthorized: "the access token is not accepted: check the account that the program runs as",
			http.StatusForbidden:    "the account needs roles/cloudtasks.enqueuer on the queue, and roles/iam.serviceAccountUser on the service account",
			http.StatusNotFound:     "check that the queue exists: gcloud tasks queues create",
		},
	}}, nil
}

// Set makes a task for a time. Its name is derived from the time, so that setting the same time again makes no second task: Cloud Tasks refuses a name
// while such a task exists, and for an hour after it was done. A time is never set again after it has passed, as only future times are set; a task that
// was deleted by hand is left to the watchdog.
func (a *Alarm) Set(ctx context.Context, at time.Time) error {
	payload, err := a.task(at)
	if err != nil {
		return err
	}
	err = a.create(ctx, payload, false)
	if statusOf(err) == http.StatusUnauthorized { // it may have been withdrawn before its time
		err = a.create(ctx, payload, true)
	}
	if statusOf(err) == http.StatusConflict { // ALREADY_EXISTS
		return nil
	}
	return err
}

// task is the body of CreateTask.
func (a *Alarm) task(at time.Time) ([]byte, error) {
	c := &a.config
	unix := strconv.FormatInt(at.Unix(), 10)
	// A hash in front, as names in the order of time make the queue slow, says Google.
	sum := sha256.Sum256([]byte(a.target + unix))
	return json.Marshal(map[string]any{"task": map[string]any{
		"name":         c.Queue + "/tasks/" + hex.EncodeToString(sum[:8]) + "-" + unix,
		"scheduleTime": at.UTC().Format(time.RFC3339),
		"httpRequest": map[string]any{
			"url": c.URL, "httpMethod": http.MethodPost, "headers": map[string]string{"Content-Type": "application/json"},
			"body":      []byte(`{"all":true,"alarm_at":"` + at.UTC().Format(time.RFC3339) + `"}`), // in base64
			"oidcToken": map[string]string{"serviceAccountEmail": c.ServiceAccount, "audience": c.Audience},
		},
	}})
}

// create calls CreateTask.
func (a *Alarm) create(ctx context.Context, payload []byte, renew bool) error {
	token, err := a.config.Token(ctx, renew)
	if err != nil {
		return err
	}
	api := a.api
	api.Hidden = []string{token}
	_, err = api.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.config.Endpoint+"/v2/"+a.config.Queue+"/tasks", bytes.NewReader(payload))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		return r, nil
	})
	return err
}

// statusOf is the status that an error is about; zero if it is about none.
func statusOf(err error) int {
	if refused, ok := errors.AsType[*apicall.StatusError](err); ok {
		return refused.Status
	}
	return 0
}

// reason is what Google says: {"error": {"status": "NOT_FOUND", "message": "..."}}.
func reason(body []byte) string {
	var said struct {
		Error struct{ Status, Message string }
	}
	if json.Unmarshal(body, &said) != nil || said.Error.Status == "" {
		return string(body)
	}
	return said.Error.Status + " " + said.Error.Message
}
