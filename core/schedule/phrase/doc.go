// Package phrase reads schedules as people say them, "every weekday at 9am", and prints any schedule as such a phrase. It is pure: it knows no
// store and no clock, and works on the time and the zone that it is given.
//
// It never guesses. A phrase that has two meanings is refused with an *[AmbiguousError]: the question, and the answers, each of which is a phrase with
// one meaning. A phrase with a word that has no place in it is refused with an *[UnknownError] that names the word: no word is ever dropped. What is
// understood and cannot be, such as an interval of no length, is refused with a *[RefusedError].
//
// What is understood, in any order and any case:
//
//   - how often: "every 5 minutes", "hourly", "every quarter hour", "every day", "weekly", "yearly", "twice a day"
//   - on which days: "every weekday", "mondays and thursdays", "mon-fri", "every day except sunday", "on the 1st and 15th of each month", "on the last
//     friday of the month", "every january 1st", "friday the 13th"
//   - at which times: "at 9am", "at 09:00 and 17:30", "at noon", "at half past nine in the morning", "every hour at :15"
//   - within which hours: "between 9am and 5pm", "from 09:00 through 16:45"
//   - once: "tomorrow at 8am", "in 2 hours", "2026-12-24 18:00", "24 december 2026 at 6pm", "now"
//   - in which zone: "in Europe/Berlin", "UTC", "in the agent's zone"
//   - anything else that cron can say: "cron 0 9 * * 1-5"
//
// Some rules that decide what has one meaning:
//
//   - Hours with minutes are those of the 24-hour clock: 9:00 is in the morning. A bare hour from 1 to 12 is asked about, unless the phrase says which
//     part of the day it is in, or only one of the two can be meant.
//   - "every 5 minutes" is an interval that begins when the task is submitted. With days, hours or "on the clock" it is a cron expression, and must
//     divide the hour or the day.
//   - "between" and "to" leave out the end if the interval is shorter than an hour, as cron cannot say otherwise; longer ones are asked about.
//     "through" includes the end.
//   - "weekday" is Monday to Friday, "weekend" Saturday and Sunday.
//   - A day named alone ("monday at 9am") is once or each week, and is asked about.
package phrase
