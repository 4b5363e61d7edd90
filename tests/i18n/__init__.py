"""Tests of i18n."""
